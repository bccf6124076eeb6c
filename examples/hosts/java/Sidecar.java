import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** A sidecar process behind two pipes. It carries messages; of their meaning it knows how to say goodbye. */
final class Sidecar implements AutoCloseable {
    /** What the sidecar can reach. */
    interface Host {
        /** Serves a request. Several may be served at once. */
        JsonObject answer(String method, JsonObject params) throws RemoteException;

        /** Hears notifications, in order, one at a time; those before an answer are heard before it is given. */
        void notice(String method, JsonObject params);
    }

    /** An error answer. */
    static final class RemoteException extends Exception {
        private static final long serialVersionUID = 1;
        final int code;

        RemoteException(int code, String message) {
            super(message);
            this.code = code;
        }
    }

    private static final String START = """
        command -v "$1" >/dev/null || { echo "cannot start $1: there is no such program" >&2; exit 127; }
        trap '' INT; exec "$@"
        """;

    private final Host host;
    private final Process process;
    private final OutputStream in;
    private final AtomicInteger lastId = new AtomicInteger();
    private final Map<String, CompletableFuture<JsonElement>> waiting = new ConcurrentHashMap<>();
    private volatile boolean ended;
    private final ExecutorService tasks = Executors.newCachedThreadPool(Sidecar::daemon);

    /** Starts the command. The shell in between makes it deaf to a terminal's Ctrl-C, which is for the host alone. */
    Sidecar(List<String> command, Host host) throws IOException {
        this.host = host;
        List<String> deaf = new ArrayList<>(List.of("sh", "-c", START, "sh"));
        deaf.addAll(command);
        ProcessBuilder builder = new ProcessBuilder(deaf).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().remove("PYTHONPATH");
        process = builder.start();
        in = process.getOutputStream();
        daemon(this::read).start();
    }

    /** Sends a request before it returns. The future fails with a RemoteException, or an IOException at the end. */
    CompletableFuture<JsonElement> request(String method, JsonObject params) {
        String id = String.valueOf(lastId.incrementAndGet());
        CompletableFuture<JsonElement> answered = new CompletableFuture<>();
        waiting.put(id, answered);
        JsonObject message = new JsonObject();
        message.addProperty("id", Integer.valueOf(id));
        message.addProperty("method", method);
        message.add("params", params);
        send(message);
        if (ended) { // perhaps after all others were told
            end();
        }
        return answered;
    }

    /** Ends the sidecar in good order, or by force after five seconds. */
    @Override
    public void close() {
        try {
            request("shutdown", new JsonObject()).get(5, TimeUnit.SECONDS);
            JsonObject exit = new JsonObject();
            exit.addProperty("method", "exit");
            send(exit);
            in.close();
            process.waitFor(5, TimeUnit.SECONDS);
        } catch (Exception gone) {
            // there is nobody to say goodbye to
        } finally {
            process.destroyForcibly();
        }
    }

    /** Hands out what comes. It never writes: were the pipe to the sidecar full, this one must be read all the same. */
    private void read() {
        try (InputStream out = new BufferedInputStream(process.getInputStream())) {
            while (true) {
                receive(JsonParser.parseString(readFrame(out)).getAsJsonObject());
            }
        } catch (IOException | RuntimeException end) {
            ended = true;
            end();
        }
    }

    private static String readFrame(InputStream out) throws IOException {
        int length = -1;
        for (String line = readLine(out); !line.isEmpty() || length < 0; line = readLine(out)) {
            String[] field = line.split(":", 2);
            if (field[0].trim().equalsIgnoreCase("Content-Length")) {
                length = Integer.parseInt(field[1].trim());
            }
        }
        byte[] body = out.readNBytes(length);
        if (body.length < length) {
            throw new EOFException();
        }
        return new String(body, StandardCharsets.UTF_8);
    }

    private static String readLine(InputStream out) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int c = out.read(); c != '\n'; c = out.read()) {
            if (c < 0) {
                throw new EOFException();
            }
            line.write(c);
        }
        return line.toString(StandardCharsets.US_ASCII).strip();
    }

    private void receive(JsonObject message) {
        if (!message.has("method")) {
            CompletableFuture<JsonElement> answered = waiting.remove(message.get("id").toString());
            if (answered == null) {
                return;
            }
            if (message.has("error")) {
                JsonObject error = message.getAsJsonObject("error");
                JsonElement kind = error.has("data") ? error.getAsJsonObject("data").get("kind") : error.get("code");
                String text = kind.getAsString() + ": " + error.get("message").getAsString();
                answered.completeExceptionally(new RemoteException(error.get("code").getAsInt(), text));
            } else {
                answered.complete(message.get("result"));
            }
            return;
        }
        String method = message.get("method").getAsString();
        JsonObject params = message.has("params") ? message.getAsJsonObject("params") : new JsonObject();
        if (message.has("id")) {
            tasks.execute(() -> answer(message.get("id"), method, params));
        } else {
            host.notice(method, params);
        }
    }

    private void answer(JsonElement id, String method, JsonObject params) {
        JsonObject message = new JsonObject();
        message.add("id", id);
        try {
            message.add("result", host.answer(method, params));
        } catch (RemoteException | RuntimeException failed) {
            JsonObject error = new JsonObject();
            error.addProperty("code", failed instanceof RemoteException known ? known.code : -32603);
            error.addProperty("message", failed instanceof RemoteException ? failed.getMessage() : method + " failed");
            message.add("error", error);
        }
        send(message);
    }

    private void send(JsonObject message) {
        message.addProperty("jsonrpc", "2.0");
        byte[] body = message.toString().getBytes(StandardCharsets.UTF_8);
        byte[] header = ("Content-Length: " + body.length + "\r\n\r\n").getBytes(StandardCharsets.US_ASCII);
        synchronized (in) {
            try {
                in.write(header);
                in.write(body);
                in.flush();
            } catch (IOException gone) {
                // the sidecar has ended, and whoever waits for an answer is told
            }
        }
    }

    private void end() {
        waiting.values().forEach(answered -> answered.completeExceptionally(new IOException("the sidecar has ended")));
    }

    private static Thread daemon(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    }
}
