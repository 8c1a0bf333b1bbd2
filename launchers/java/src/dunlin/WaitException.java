package dunlin;

/** A wait was in vain. */
public final class WaitException extends DunlinException {
    private static final long serialVersionUID = 1;

    WaitException(String message) {
        super(message);
    }
}
