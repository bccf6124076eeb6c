import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** A host in Java: one run for TEXT, with a tool that a person has to allow. LSP's framing, over pipes. */
public final class Host implements Sidecar.Host {
    private static final String INITIALIZE = """
        {"initializationOptions": {"sidecar": {
          "protocolVersions": [1],
          "features": {"approvals": {}}
        }}}""";
    private static final String CREATE_SESSION = """
        {"model": "scripted:model.toml",
         "tools": [{
           "name": "save_note",
           "description": "Keep a note.",
           "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
           "approvalMode": "always_require"
         }]}""";

    /** What a terminal obeys, or does not show: controls, directions, what has no width. */
    private static final Pattern OBEYED = Pattern.compile("(?![\n\t])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]");
    /** What could look like something else to a person who consents. */
    private static final Pattern NOT_ASCII = Pattern.compile("[^ -~]");

    private final boolean yes;
    private final BufferedReader person = new BufferedReader(new InputStreamReader(System.in));
    private boolean midLine; // on the screen; only notice uses it

    private Host(boolean yes) {
        this.yes = yes;
    }

    public static void main(String[] arguments) throws InterruptedException {
        boolean yes = arguments.length == 2 && arguments[0].equals("--yes");
        if (arguments.length != (yes ? 2 : 1)) {
            System.err.println("usage: Host [--yes] TEXT");
            System.exit(2);
        }
        System.setOut(new PrintStream(System.out, true, StandardCharsets.UTF_8)); // whatever the locale is
        System.setErr(new PrintStream(System.err, true, StandardCharsets.UTF_8));
        String given = System.getenv().getOrDefault("SIDECAR_COMMAND", "");
        String command = given.isBlank() ? "agent-sidecar serve --store memory" : given.strip();
        try (Sidecar sidecar = new Sidecar(List.of(command.split("\\s+")), new Host(yes))) {
            converse(sidecar, arguments[arguments.length - 1]);
            return;
        } catch (ExecutionException failed) {
            System.err.println(visible(failed.getCause().getMessage(), OBEYED));
        } catch (IOException failed) {
            System.err.println(failed.getMessage());
        }
        System.exit(1);
    }

    /** Has one run. Ctrl-C begins the machine's shutdown: it cancels the run, and waits until main has ended. */
    private static void converse(Sidecar sidecar, String text) throws ExecutionException, InterruptedException {
        JsonObject initialize = parse(INITIALIZE);
        initialize.addProperty("processId", ProcessHandle.current().pid());
        sidecar.request("initialize", initialize).thenAccept(Host::check).get();
        JsonObject session = new JsonObject();
        session.addProperty("sessionId", UUID.randomUUID().toString());
        JsonObject create = parse(CREATE_SESSION);
        create.add("sessionId", session.get("sessionId"));
        sidecar.request("createSession", create).get();

        JsonObject run = session.deepCopy();
        run.addProperty("runId", UUID.randomUUID().toString());
        run.addProperty("input", text);
        CompletableFuture<JsonElement> answered = sidecar.request("run", run);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                if (!answered.isDone()) {
                    sidecar.request("cancelRun", session);
                    main.join(5_000);
                }
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
            }
        }));
        JsonObject result = answered.get().getAsJsonObject();
        String shown = "= " + result.get("status").getAsString() + ": " + result.get("text").getAsString();
        System.out.println(visible(shown, OBEYED));
    }

    private static void check(JsonElement server) {
        JsonElement name = at(server, "serverInfo", "name");
        JsonElement version = at(server, "capabilities", "experimental", "sidecar", "protocolVersion");
        if (!new JsonPrimitive("agent-sidecar").equals(name) || !new JsonPrimitive(1).equals(version)) {
            throw new IllegalStateException("this is no agent-sidecar that speaks protocol version 1");
        }
    }

    private static JsonElement at(JsonElement from, String... path) {
        for (String name : path) {
            from = from instanceof JsonObject object ? object.get(name) : null;
        }
        return from;
    }

    @Override
    public JsonObject answer(String method, JsonObject params) throws Sidecar.RemoteException {
        switch (method) {
            case "host/callTool":
                return callTool(params.get("name").getAsString(), params.getAsJsonObject("arguments"));
            case "host/requestApproval":
                return decide(params);
            default:
                throw new Sidecar.RemoteException(-32601, method + " is not served here");
        }
    }

    /** Carries out a tool. One that fails gives a result, too: the model is to read it. */
    private static JsonObject callTool(String name, JsonObject arguments) {
        JsonObject result = new JsonObject();
        if (name.equals("save_note")) {
            result.addProperty("content", "Saved: " + arguments.get("text").getAsString() + ".");
        } else {
            result.addProperty("content", "There is no tool " + name + ".");
            result.addProperty("isError", true);
        }
        return result;
    }

    private JsonObject decide(JsonObject question) {
        String kind = yes || consents(question) ? "allowOnce" : "rejectOnce";
        JsonObject decision = new JsonObject();
        decision.addProperty("outcome", "cancelled");
        for (JsonElement option : question.getAsJsonArray("options")) {
            if (option.getAsJsonObject().get("kind").getAsString().equals(kind)) {
                decision.addProperty("outcome", "selected");
                decision.add("optionId", option.getAsJsonObject().get("optionId"));
            }
        }
        return decision;
    }

    /** Asks the person, one question at a time. The end of the input is no consent. */
    private synchronized boolean consents(JsonObject question) {
        String call = question.get("title").getAsString() + " " + at(question, "toolCall", "arguments");
        System.err.print(visible(call, NOT_ASCII) + " [y/N] ");
        try {
            return "y".equals(person.readLine());
        } catch (IOException gone) {
            return false;
        }
    }

    /** Shows what is hidden by its number. What a model wrote is data: none of it may hide, or move the cursor. */
    private static String visible(String text, Pattern hidden) {
        return hidden.matcher(text).replaceAll(found -> found.group().chars()
            .mapToObj(c -> String.format("\\\\u%04x", c))
            .collect(Collectors.joining()));
    }

    /** Prints what happens in the run. What it does not know, it leaves out. */
    @Override
    public void notice(String method, JsonObject event) {
        if (!method.equals("run/event")) {
            return;
        }
        switch (event.get("type").getAsString()) {
            case "message.delta":
                System.out.print(visible(event.getAsJsonObject("data").get("text").getAsString(), OBEYED));
                System.out.flush();
                midLine = true;
                break;
            case "tool.completed":
                endLine();
                JsonObject data = event.getAsJsonObject("data");
                String done = data.get("name").getAsString() + " " + data.get("status").getAsString();
                System.out.println("[" + visible(done, OBEYED) + "]");
                break;
            case "message.completed", "run.completed":
                endLine();
                break;
            default:
        }
    }

    private void endLine() {
        if (midLine) {
            System.out.println();
            midLine = false;
        }
    }

    private static JsonObject parse(String json) {
        return JsonParser.parseString(json).getAsJsonObject();
    }
}
