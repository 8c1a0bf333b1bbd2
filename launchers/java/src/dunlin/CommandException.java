package dunlin;

/** The server refused a command; the message is the server's. */
public final class CommandException extends DunlinException {
    private static final long serialVersionUID = 1;

    CommandException(String message) {
        super(message);
    }
}
