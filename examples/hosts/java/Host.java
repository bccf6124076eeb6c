import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/** A host in Java: one run for TEXT, with a tool that a person has to allow. LSP's framing, over pipes. */
public final class Host implements Sidecar.Host {
    private static final String INITIALIZE = """
        {"initializationOptions": {"sidecar": {
          "protocolVersions": [1],
          "features": {"hostTools": {}, "approvals": {}}
        }}}""";
    private static final String CREATE_SESSION = """
        {"model": "scripted:model.toml",
         "tools": [{
           "name": "save_note",
           "description": "Keep a note.",
           "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
           "approvalMode": "always_require"
         }]}""";

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
        String command = System.getenv().getOrDefault("SIDECAR_COMMAND", "agent-sidecar serve --store memory");
        try (Sidecar sidecar = new Sidecar(List.of(command.split(" +")), new Host(yes))) {
            converse(sidecar, arguments[arguments.length - 1]);
            return;
        } catch (ExecutionException failed) {
            System.err.println(failed.getCause().getMessage());
        } catch (IOException failed) {
            System.err.println("cannot start " + command + ": " + failed.getMessage());
        }
        System.exit(1);
    }

    /** Has one run. Ctrl-C begins the machine's shutdown: it cancels the run, and waits until main has ended. */
    private static void converse(Sidecar sidecar, String text) throws ExecutionException, InterruptedException {
        JsonObject initialize = parse(INITIALIZE);
        initialize.addProperty("processId", ProcessHandle.current().pid());
        sidecar.request("initialize", initialize).get();
        JsonObject created = sidecar.request("createSession", parse(CREATE_SESSION)).get().getAsJsonObject();

        JsonObject session = new JsonObject();
        session.add("sessionId", created.getAsJsonObject("session").get("sessionId"));
        JsonObject run = session.deepCopy();
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
        System.out.println("= " + result.get("status").getAsString() + ": " + result.get("text").getAsString());
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
        String call = question.getAsJsonObject("toolCall").get("arguments").toString();
        System.err.print(question.get("title").getAsString() + " " + visible(call) + " [y/N] ");
        try {
            return "y".equals(person.readLine());
        } catch (IOException gone) {
            return false;
        }
    }

    /** JSON in ASCII: the model wrote it, and nothing in it may hide or move the cursor. */
    private static String visible(String json) {
        return json.chars()
            .mapToObj(c -> ' ' <= c && c <= '~' ? String.valueOf((char) c) : String.format("\\u%04x", c))
            .collect(Collectors.joining());
    }

    /** Prints what happens in the run. What it does not know, it leaves out. */
    @Override
    public void notice(String method, JsonObject event) {
        if (!method.equals("run/event")) {
            return;
        }
        switch (event.get("type").getAsString()) {
            case "message.delta":
                System.out.print(event.getAsJsonObject("data").get("text").getAsString());
                System.out.flush();
                midLine = true;
                break;
            case "tool.completed":
                endLine();
                JsonObject data = event.getAsJsonObject("data");
                System.out.printf("[%s %s]%n", data.get("name").getAsString(), data.get("status").getAsString());
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
