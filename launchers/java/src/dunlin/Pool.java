package dunlin;

import java.util.ArrayList;
import java.util.List;

/**
 * The connections of a server or a world: one for each call that is under way, so that a thread that waits keeps no
 * other thread from moving the clock.
 */
final class Pool {
    static final int PATIENCE_MS = 10_000;
    /** How many connections without work are kept: as many as tests that end together begin again soon. */
    private static final int IDLE = 16;

    final Address address;
    final List<?> entrance;
    private final List<Connection> idle = new ArrayList<>();
    private int count;
    private boolean isClosed;
    /** Whether a connection was lost, and perhaps the world with it. */
    private boolean hasLost;

    /** The entrance is the command by which each new connection comes into the world of its third word, or empty. */
    Pool(Address address, List<?> entrance) {
        this.address = address;
        this.entrance = entrance;
    }

    synchronized int count() {
        return count;
    }

    /** A connection without work, or null if there is none. */
    private synchronized Connection taken() {
        if (isClosed) throw new DunlinException(entrance.isEmpty() ? "the server is closed" : "the world is closed");
        return idle.isEmpty() ? null : idle.remove(idle.size() - 1);
    }

    private Connection opened() {
        boolean isSought;
        synchronized (this) {
            count++;
            isSought = hasLost && !entrance.isEmpty();
        }
        Connection connection = null;
        try {
            connection = new Connection(address, PATIENCE_MS);
            // A world whose last client is gone would be made anew, without its data.
            if (isSought && !hasWorld(connection)) throw new LostException(false, null);
            if (!entrance.isEmpty()) Connection.checked(connection.call(entrance, PATIENCE_MS));
            return connection;
        } catch (RuntimeException error) {
            if (connection != null) connection.close();
            lose();
            throw error;
        }
    }

    private boolean hasWorld(Connection connection) {
        Object worlds = Connection.checked(connection.call(List.of("DUNLIN", "WORLDS"), PATIENCE_MS));
        return Reply.maps(worlds).stream().anyMatch(each -> entrance.get(2).equals(each.get("name")));
    }

    /** Sees to it that a connection is idle. */
    void prepare() {
        Connection connection = taken();
        give(connection == null ? opened() : connection);
    }

    private synchronized void give(Connection connection) {
        if (isClosed) {
            count--;
            connection.close();
        } else {
            idle.add(connection);
        }
    }

    /** Takes over the connection of another pool, unless enough are idle here. */
    synchronized void adopt(Connection connection) {
        if (idle.size() < IDLE && !isClosed) {
            count++;
            idle.add(connection);
        } else {
            connection.close();
        }
    }

    /** Forgets a connection that was taken, and is closed or in another pool. */
    private synchronized void lose() {
        count--;
    }

    /** Lends the connection that has run commands, none of which was refused, to another pool. */
    Connection lend(List<? extends List<?>> commands) {
        Answer answer = answer(commands, PATIENCE_MS);
        lose();
        try {
            for (Object reply : answer.replies) Connection.checked(reply);
        } catch (CommandException error) {
            answer.connection.close();
            throw error;
        }
        return answer.connection;
    }

    Object call(List<?> command, int patienceMs) {
        return Connection.checked(callAll(List.of(command), patienceMs).get(0));
    }

    List<Object> callAll(List<? extends List<?>> commands, int patienceMs) {
        Answer answer = answer(commands, patienceMs);
        give(answer.connection);
        return answer.replies;
    }

    private record Answer(Connection connection, List<Object> replies) {}

    /** Where the server had closed an idle connection, another one takes its place. */
    private Answer answer(List<? extends List<?>> commands, int patienceMs) {
        Connection idle = taken();
        if (idle == null) return answer(opened(), commands, patienceMs);
        try {
            return answer(idle, commands, patienceMs);
        } catch (LostException error) {
            if (error.hadReplies) throw error;
            Connection other = opened();
            if (!drops(other)) return answer(other, commands, patienceMs);
            give(other);
            throw error;
        }
    }

    private Answer answer(Connection connection, List<? extends List<?>> commands, int patienceMs) {
        try {
            return new Answer(connection, connection.callAll(commands, patienceMs));
        } catch (RuntimeException error) {
            // A reply that is late is given up; the world would end with its last client.
            if (error instanceof WaitException) replace();
            connection.close();
            lose();
            synchronized (this) {
                hasLost = true;
            }
            throw error;
        }
    }

    /** Whether a fault may have closed a connection, whose commands may have run then. */
    private boolean drops(Connection connection) {
        List<List<String>> question = List.of(List.of("DUNLIN", "FAULT", "LIST"));
        return !List.of().equals(answer(connection, question, PATIENCE_MS).replies.get(0));
    }

    private void replace() {
        try {
            give(opened());
        } catch (DunlinException ignored) {
            // Whoever calls next finds out.
        }
    }

    /** Ends the pool; the idle connections are the caller's. */
    synchronized List<Connection> drain() {
        isClosed = true;
        List<Connection> taken = List.copyOf(idle);
        count -= taken.size();
        idle.clear();
        return taken;
    }
}
