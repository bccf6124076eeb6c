#!/bin/sh
# A host in POSIX shell and jq: one run for TEXT. One JSON object a line, over pipes.
#
# This shell is the person's side: it asks, and hears Ctrl-C. Behind it, `conversation` reads what the sidecar sends.
# Neither that nor the sidecar hears Ctrl-C.
set -fu
unset PYTHONPATH

yes=
if [ "${1-}" = --yes ]; then
  yes=y
  shift
fi
if [ $# -ne 1 ]; then
  echo "usage: host.sh [--yes] TEXT" >&2
  exit 2
fi
input=$1
set -- ${SIDECAR_COMMAND-} # split at its blanks
[ $# -ne 0 ] || set -- agent-sidecar serve --store memory
if ! command -v "$1" >/dev/null; then
  echo "cannot start $1: there is no such program" >&2
  exit 1
fi

# mint: a new id. What it names can be sent again, and is carried out once.
mint() {
  od -An -N8 -tx1 /dev/urandom | tr -d ' \n'
}

# request ID METHOD PARAMS [JQ ARGUMENTS]: PARAMS is a jq expression. Several processes send at the same time: a line
# goes into a pipe whole as long as it is shorter than PIPE_BUF (4096 on Linux).
request() {
  id=$1 method=$2 params=$3
  shift 3
  jq -nc --argjson id "$id" --arg method "$method" "$@" '{jsonrpc: "2.0", $id, $method, params: ('"$params"')}' >&3
}

# answer MESSAGE OUTCOME: answers what the sidecar has asked. OUTCOME is a jq expression over the message that gives
# {result: …} or {error: …}.
answer() {
  printf '%s\n' "$1" | jq -c '{jsonrpc: "2.0", id} + ('"$2"')' >&3
}

# What a model wrote is data: what a terminal would obey, or not show, is shown as its bytes.
visible='def visible: gsub("(?<c>(?!\\t)[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}])"; .c | @uri);'

# What comes from the sidecar, as lines of a word and the rest. What nobody here knows is left out.
to_lines='
  if .method == "run/event" then
    .params
    | if .type == "message.delta" then .data.text | split("\n") | map("text " + visible) | join("\nnewline\n")
      elif .type == "message.completed" or .type == "run.completed" then "end-of-text"
      elif .type == "tool.completed" then "end-of-text", ("line [\(.data.name) \(.data.status)]" | visible)
      else empty end
  elif .method and has("id") then "\(.method) \(tojson)"
  elif .method then empty
  elif .id == 5 then "bye"
  elif .error then "error \(.error.data.kind // .error.code): \(.error.message)" | visible
  elif .id == 1 then
    [.result | .serverInfo.name?, .capabilities.experimental.sidecar.protocolVersion?]
    | if . == ["agent-sidecar", 1] then empty else "stranger" end
  elif .id == 3 then (.result | "= \(.status): \(.text)" | split("\n")[] | "line " + visible), "done"
  else empty end'

# Reads until the sidecar has answered `shutdown`. What it asks is answered in jobs of their own: reading never waits
# for writing, nor for the person.
conversation() {
  status=1 over='' text=''
  while IFS= read -r line; do
    rest=${line#* }
    case ${line%% *} in
      text)
        printf %s "$rest"
        text=yes
        ;;
      newline) echo ;;
      end-of-text)
        [ -z "$text" ] || echo
        text=''
        ;;
      line) printf '%s\n' "$rest" ;;
      host/callTool)
        answer "$rest" '.params
          | if .name == "save_note" then {result: {content: "Saved: \(.arguments.text)."}}
            else {result: {content: "There is no tool \(.name).", isError: true}} end' &
        ;;
      host/requestApproval) printf '%s\n' "$rest" >&5 ;;
      stranger)
        echo "this is no agent-sidecar that speaks protocol version 1" >&2
        kill "$sidecar"
        cat >/dev/null
        exit 1
        ;;
      done)
        status=0 over=yes
        request 5 shutdown '{}'
        ;;
      bye)
        echo '{"jsonrpc":"2.0","method":"exit"}' >&3
        exit "$status"
        ;;
      error)
        [ -z "$over" ] || continue # what was sent after it fails with it
        [ -z "$text" ] || echo
        printf '%s\n' "$rest" >&2
        over=yes
        request 5 shutdown '{}'
        ;;
      *) answer "$rest" '{error: {code: -32601, message: "\(.method) is not served here"}}' & ;;
    esac
  done
  echo "the sidecar has ended" >&2
  exit 1
}

# consent MESSAGE: asks the person. The model wrote the arguments, and nothing in them may hide or move the cursor: -a
# and sed show by its number what is not ASCII, and DEL.
consent() {
  said=$yes
  if [ -z "$said" ]; then
    title=$(printf '%s\n' "$1" | jq -r "$visible"'.params.title | visible')
    arguments=$(printf '%s\n' "$1" | jq -ac .params.toolCall.arguments | sed "s/$(printf '\177')/\\\\u007f/g")
    printf '%s %s [y/N] ' "$title" "$arguments" >&2
    # Neither the end of the input nor Ctrl-C is consent.
    [ -z "$stopped" ] && read -r said || said=''
  fi
  case $said in
    y) kind=allowOnce ;;
    *) kind=rejectOnce ;;
  esac
  answer "$1" '{result: (
    first(.params.options[] | select(.kind == "'"$kind"'") | {outcome: "selected", optionId})
    // {outcome: "cancelled"}
  )}'
}

trap 'exit 130' INT
trap '' PIPE # a sidecar that has gone is told by the end of its output
pipes=$(mktemp -d) || exit
trap 'rm -rf "$pipes"' EXIT
mkfifo "$pipes/in" "$pipes/out" "$pipes/questions"
(trap '' INT && exec "$@") <"$pipes/in" >"$pipes/out" &
sidecar=$!
exec 3>"$pipes/in" 4<"$pipes/out"

# What is known beforehand is sent at once.
session=$(mint)
request 1 initialize '{
  processId: $pid,
  initializationOptions: {sidecar: {protocolVersions: [1], features: {approvals: {}}}}
}' --argjson pid $$
request 2 createSession '{
  $sessionId,
  model: "scripted:model.toml",
  tools: [{
    name: "save_note",
    description: "Keep a note.",
    inputSchema: {type: "object", properties: {text: {type: "string"}}, required: ["text"]},
    approvalMode: "always_require"
  }]
}' --arg sessionId "$session"
request 3 run '{$sessionId, $runId, $input}' --arg sessionId "$session" --arg runId "$(mint)" --arg input "$input"

stopped=
stop() {
  stopped=now
  trap 'exit 130' INT # once more ends it all
  echo '{"jsonrpc":"2.0","id":4,"method":"cancelRun","params":{"sessionId":"'"$session"'"}}' >&3
}
trap stop INT
{
  trap '' INT
  jq --unbuffered -r "$visible $to_lines" <&4 3>&- | conversation
} 5>"$pipes/questions" &
conversation=$!
exec 5<"$pipes/questions"
while :; do
  if IFS= read -r question <&5; then
    consent "$question"
  elif [ "$stopped" = now ]; then # that was Ctrl-C, and not the end
    stopped=before
  else
    break
  fi
done
wait "$conversation"
status=$?
exec 3>&-
wait
[ -z "$stopped" ] || status=130
exit "$status"
