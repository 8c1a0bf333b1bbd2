import dunlin.Dunlin;

/** A process with a server, which says where that is, and then waits for its end. */
public final class Holder {
    private Holder() {}

    public static void main(String[] arguments) throws Exception {
        Dunlin server = Dunlin.start();
        System.out.println(server.pid() + " " + server.port());
        if (arguments.length > 0) System.exit(0);
        System.in.read();
    }
}
