package dunlin;

/** The base of what the methods here throw, but for assertions: a server that does not start, or does not answer. */
public class DunlinException extends RuntimeException {
    private static final long serialVersionUID = 1;

    public DunlinException(String message) {
        super(message);
    }

    DunlinException(String message, Throwable cause) {
        super(message, cause);
    }
}
