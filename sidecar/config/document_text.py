"""The prose of `docs/configuration.md`, which no type can tell: order, trust, plug-ins. The tables are generated."""

from typing import Final

INTRODUCTION: Final = """\
<!-- Written by `python -m sidecar.config.document`; change the types or `sidecar/config/document_text.py` instead. -->

# Configuration

`sidecar.toml` is TOML with keys in snake_case. The same keys are camelCase on the wire. A key that does not exist, a
value of the wrong type and a value that cannot be are refused, with file, line, key and the nearest valid spelling.

```sh
agent-sidecar config check    # is everything right, and what is ignored?
agent-sidecar config show     # everything that holds, each value with where it came from
agent-sidecar config path     # the files that were read
```

## Where values come from

Each source is laid over the ones before it:

1. the defaults in the tables below;
2. your own file: `sidecar.toml` in the platform's configuration folder (`agent-sidecar config path` names it);
3. the project's file, as far as it is trusted (see below);
4. the file that `--config` names;
5. the environment: `AGENT_SIDECAR_STORE` (`store.path`) and `AGENT_SIDECAR_LOG` (`logging.level`);
6. the flags `--store`, `--log-level` and `--log-file`;
7. `initializationOptions.sidecar.config`, JSON that a host sends, of which as little counts as of a project's file
   that nobody trusts.

Tables are merged key by key; a list replaces the whole list below it. Deny rules of `approvals` are the exception: a
later source can add to them, and never take one away. `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` fill in
what endpoints and agents leave open. Relative paths are relative to the file that holds them.

A sidecar reads its files when it starts, and again at `reloadConfig` or LSP's `workspace/didChangeConfiguration`. If
they are wrong then, the earlier configuration stays. Sessions take up what is new when they are created or resumed.
The store, the log, telemetry, embeddings and the limits of connection and process wait for the next start.

## The project's file

For each session a `sidecar.toml` is looked for in its working directory (`cwd`; by default the first workspace
folder) and in the folders above, up to the one that holds `.git`, and never above the home folder. The nearest one
counts. Outside of a repository only the folder itself is looked at. Every session is opened with the file as it is
then. The name of an agent means the agent of that folder.

**Until you trust it**, a project's file can only add agents that your own files do not define, each with
`description`, `instructions` and `options`. Everything else in it does nothing, and is named in a warning: on stderr
and in the answer to `createSession`. So is everything that is wrong with it.

```sh
agent-sidecar trust DIR            # trust the file that counts in DIR, as it is now
agent-sidecar trust DIR --remove   # no longer
agent-sidecar trust --list
```

A host passes its user's word on with `trustFolder`. What is trusted is content: the file, the `instructions_file`s
that it names, and every file in its `plugins` folders, each by its SHA-256. When one of them changes, the file counts
as not trusted until you say so again. All of it is kept in `trust.json` beside your own configuration; if that is
damaged, or others may write to it, nothing is trusted.

In a trusted file every key counts for the sessions of that project. What concerns a whole process (`store`,
`logging`, `telemetry`, `embeddings`, the limits of the process) counts where the sidecar was started in that project;
limits of the connection count in your own file and in `--config` only. A warning says so. If a trusted file is wrong,
its sessions are refused with `configInvalid`; other folders are not affected.

## Plug-ins

Context providers, tools, middleware, chat clients and agents may be of your own: [Plug-ins](plugins.md) shows each.
There are two ways to them:

- **By import path.** `plugins` names folders; they are put at the end of `sys.path`, so that nothing in them hides a
  module that is there already. A configuration file then names `module:name`. Only your own files and trusted projects
  can do this; over the wire an import path is refused. A folder that another user owns, or that others may write to,
  is refused. Bytecode in it is neither read nor written.
- **By entry point.** A package that is installed beside the sidecar registers them in the groups
  `agent_sidecar.providers`, `.tools`, `.middleware`, `.chat_clients` and `.agents`. Their names then count like any
  other, over the wire too.

A plug-in is imported when a session needs it (a chat client: a run). One that cannot be imported, or is not what it is
to be, makes that session's `createSession` (that run) fail with `configInvalid`, which names plug-in, file and line;
the log has the rest. Code that was imported stays imported until the process ends.
"""

LEGEND: Final = """\
## Keys

Times are in milliseconds (`_ms`), sizes in bytes (`_bytes`). A key marked
† belongs to a feature that this build does not have; asking for it is refused with `capabilityRequired`.
"""
