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
    private final List<?> entrance;
    private final List<Connection> idle = new ArrayList<>();
    private int count;

    /** The entrance is a command that each new connection sends first, or empty. */
    Pool(Address address, List<?> entrance) {
        this.address = address;
        this.entrance = entrance;
    }

    synchronized int count() {
        return count;
    }

    Connection take() {
        synchronized (this) {
            if (!idle.isEmpty()) return idle.remove(idle.size() - 1);
            count++;
        }
        Connection connection = null;
        try {
            connection = new Connection(address, PATIENCE_MS);
            if (!entrance.isEmpty()) Connection.checked(connection.call(entrance, PATIENCE_MS));
            return connection;
        } catch (RuntimeException error) {
            if (connection != null) connection.close();
            lose();
            throw error;
        }
    }

    synchronized void give(Connection connection) {
        idle.add(connection);
    }

    /** Takes over the connection of another pool, unless enough are idle here. */
    synchronized void adopt(Connection connection) {
        if (idle.size() < IDLE) {
            count++;
            idle.add(connection);
        } else {
            connection.close();
        }
    }

    /** Forgets a connection that was taken, and is closed or in another pool. */
    synchronized void lose() {
        count--;
    }

    Object call(List<?> command, int patienceMs) {
        return Connection.checked(callAll(List.of(command), patienceMs).get(0));
    }

    List<Object> callAll(List<? extends List<?>> commands, int patienceMs) {
        Connection connection = take();
        try {
            List<Object> replies = connection.callAll(commands, patienceMs);
            give(connection);
            return replies;
        } catch (RuntimeException error) {
            lose();
            throw error;
        }
    }

    /** Takes all idle connections away. */
    synchronized List<Connection> drain() {
        List<Connection> taken = List.copyOf(idle);
        count -= taken.size();
        idle.clear();
        return taken;
    }
}
