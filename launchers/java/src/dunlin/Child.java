package dunlin;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The program as a child process. It holds the other end of a pipe and ends when that closes, which the system does
 * however this process ends.
 */
final class Child {
    private static final int LINES = 200;

    private final Process process;
    private final Deque<String> lines = new ArrayDeque<>();
    private final CompletableFuture<String> announcement = new CompletableFuture<>();
    private final Thread reader = new Thread(this::read, "dunlin-log");
    private final String program;
    final String url;
    /** The link to the page, or null where it is not served. */
    final String page;

    Child(List<String> arguments) {
        List<String> command = new ArrayList<>(List.of(""));
        command.addAll(arguments);
        if (!arguments.contains("--port")) command.addAll(List.of("--free-port", "yes"));
        command.addAll(List.of("--test-kit", "yes", "--announce", "yes", "--end-with", "stdin"));
        process = Program.started(path -> {
            command.set(0, path);
            return new ProcessBuilder(command).redirectErrorStream(true).start();
        });
        program = command.get(0);
        reader.setDaemon(true);
        reader.start();
        String line;
        try {
            line = announced();
        } catch (RuntimeException error) {
            end();
            throw error;
        }
        url = field(line, "url");
        page = field(line, "page");
    }

    long pid() {
        return process.pid();
    }

    /** The last lines that the server has written. */
    String log() {
        synchronized (lines) {
            return String.join("\n", lines);
        }
    }

    void end() {
        try {
            process.getOutputStream().close();
            if (!process.waitFor(5, TimeUnit.SECONDS)) process.destroyForcibly();
            reader.join(1000);
        } catch (IOException error) {
            process.destroyForcibly();
        } catch (InterruptedException error) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /** What a server that is ready has said. */
    private String announced() {
        String ours = Program.version();
        String line = firstLine();
        String error = field(line, "error");
        String theirs = field(line, "dunlin");
        if (error != null) throw new DunlinException(program + " could not start: " + error + tail());
        if (theirs == null) {
            throw new DunlinException(program + " did not announce a server within " + Pool.PATIENCE_MS / 1000
                + " s; this package needs the program of dunlin " + ours + tail());
        }
        if (!theirs.equals(ours)) {
            throw new DunlinException(program + " is dunlin " + theirs + ", but this package needs dunlin " + ours
                + "; set DUNLIN_BINARY to that version, or unset it to use the one of the jar");
        }
        return line;
    }

    private String firstLine() {
        try {
            return announcement.get(Pool.PATIENCE_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException error) {
            return "";
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new DunlinException("interrupted while " + program + " started", error);
        }
    }

    /** A text of the announcement, which is one line of JSON, or null. */
    private static String field(String line, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"((?:[^\"\\\\]|\\\\.)*)\"").matcher(line);
        return found.find() ? found.group(1).replaceAll("\\\\(.)", "$1") : null;
    }

    private String tail() {
        String log = log();
        return log.isEmpty() ? "" : "\n  " + log.replace("\n", "\n  ");
    }

    private void read() {
        try (BufferedReader output =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                if (line.startsWith("{") && announcement.complete(line)) continue;
                synchronized (lines) {
                    lines.add(line);
                    if (lines.size() > LINES) lines.remove();
                }
            }
        } catch (IOException ignored) {
            // It ended.
        } finally {
            announcement.complete("");
        }
    }
}
