package dunlin;

/** How a rule of strict mode treats what it finds. */
public enum Level {
    /** It looks for nothing. */
    OFF,
    /** It records a finding. */
    WARN,
    /** It records a finding, and the command is refused. */
    ERROR
}
