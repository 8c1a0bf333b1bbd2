package dunlin;

/** The server has closed a connection. */
final class LostException extends DunlinException {
    private static final long serialVersionUID = 1;

    /** Whether a part of the request had been answered. */
    final boolean hadReplies;

    LostException(boolean hadReplies, Throwable cause) {
        super("the server has closed the connection: it has ended, or the world was dropped", cause);
        this.hadReplies = hadReplies;
    }
}
