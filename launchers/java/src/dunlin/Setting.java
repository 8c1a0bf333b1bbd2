package dunlin;

import java.util.Locale;

/** What the environment says: the system property {@code dunlin.url}, or else the variable {@code DUNLIN_URL}. */
final class Setting {
    private Setting() {}

    /** The value of a setting by the name of its variable, or null. An empty one is none. */
    static String of(String variable) {
        String property = System.getProperty(variable.toLowerCase(Locale.ROOT).replace('_', '.'));
        String value = property == null ? System.getenv(variable) : property;
        return value == null || value.isEmpty() ? null : value;
    }

    /** The value of a setting that is a whole number, or null. */
    static Long number(String variable) {
        String value = of(variable);
        try {
            return value == null ? null : Long.valueOf(value);
        } catch (NumberFormatException error) {
            throw new DunlinException(variable + " must be a whole number, and not '" + value + "'", error);
        }
    }
}
