package dunlin;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * One connection of the launcher, which is no client for applications: RESP2, and texts in UTF-8. After a call that has
 * failed it is of no use, and is to be closed. A world ends with its last client, so such a connection also keeps a
 * world while the application has none.
 */
final class Connection {
    private final Socket socket = new Socket();
    private final InputStream input;

    Connection(Address address, int patienceMs) {
        try {
            socket.setTcpNoDelay(true);
            socket.connect(new InetSocketAddress(address.host(), address.port()), patienceMs);
            input = new BufferedInputStream(socket.getInputStream());
        } catch (IOException error) {
            close();
            throw new DunlinException(
                "no dunlin answers at " + address.host() + ":" + address.port() + ": " + error.getMessage(), error);
        }
        if (!address.login().isEmpty()) {
            try {
                checked(call(address.login(), patienceMs));
            } catch (DunlinException error) {
                close();
                throw error;
            }
        }
    }

    /**
     * Loads the JDK's classes for sockets. In a JVM that has just started that takes several milliseconds, which pass
     * while the program starts.
     */
    static void prepare() {
        try (Socket socket = new Socket()) {
            socket.setTcpNoDelay(true);
        } catch (IOException ignored) {
            // Whoever connects finds out.
        }
    }

    /** Returns a reply, unless it is an error. */
    static Object checked(Object reply) {
        if (reply instanceof CommandException error) throw error;
        return reply;
    }

    Object call(List<?> command, int patienceMs) {
        return callAll(List.of(command), patienceMs).get(0);
    }

    /** Sends all commands at once; a reply that is an error is a value here. */
    List<Object> callAll(List<? extends List<?>> commands, int patienceMs) {
        List<Object> replies = new ArrayList<>();
        try {
            socket.setSoTimeout(patienceMs);
            socket.getOutputStream().write(packed(commands));
            for (int each = 0; each < commands.size(); each++) replies.add(reply());
            return replies;
        } catch (SocketTimeoutException error) {
            throw new WaitException("the server has not answered within " + patienceMs + " ms: " + commands);
        } catch (IOException error) {
            throw new LostException(!replies.isEmpty(), error);
        }
    }

    void close() {
        try {
            socket.close();
        } catch (IOException ignored) {
            // It is of no use any more either way.
        }
    }

    private static byte[] packed(List<? extends List<?>> commands) {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        for (List<?> command : commands) {
            packed.writeBytes(bytes("*" + command.size() + "\r\n"));
            for (Object word : command) {
                byte[] data = word instanceof byte[] raw ? raw : bytes(String.valueOf(word));
                packed.writeBytes(bytes("$" + data.length + "\r\n"));
                packed.writeBytes(data);
                packed.writeBytes(bytes("\r\n"));
            }
        }
        return packed.toByteArray();
    }

    private Object reply() throws IOException {
        String line = line();
        String rest = line.substring(1);
        switch (line.charAt(0)) {
            case '+':
                return rest;
            case '-':
                return new CommandException(rest);
            case ':':
                return Long.valueOf(rest);
            case '$':
                int length = Integer.parseInt(rest);
                if (length < 0) return null;
                byte[] data = input.readNBytes(length + 2);
                if (data.length < length + 2) throw new EOFException();
                return new String(data, 0, length, StandardCharsets.UTF_8);
            case '*':
                int count = Integer.parseInt(rest);
                if (count < 0) return null;
                List<Object> items = new ArrayList<>(count);
                for (int each = 0; each < count; each++) items.add(reply());
                return items;
            default:
                throw new IOException("this is no server of Redis's protocol: " + line);
        }
    }

    private String line() throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream(64);
        for (int next = input.read(); next != '\r'; next = input.read()) {
            if (next < 0) throw new EOFException();
            line.write(next);
        }
        if (input.read() != '\n' || line.size() == 0) throw new IOException("this is no line of Redis's protocol");
        return line.toString(StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
