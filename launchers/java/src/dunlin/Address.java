package dunlin;

import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Where a server is, and the user and password that it wants; both are empty where it wants none. */
record Address(String host, int port, String user, String password) {
    static Address of(String url) {
        URI uri;
        try {
            uri = URI.create(url);
        } catch (IllegalArgumentException error) {
            uri = URI.create("");
        }
        if (!"redis".equals(uri.getScheme()) || uri.getHost() == null) {
            throw new DunlinException(
                "'" + url + "' is no address of a server; it should be like redis://127.0.0.1:6379");
        }
        String[] login = (uri.getRawUserInfo() == null ? "" : uri.getRawUserInfo()).split(":", 2);
        String host = uri.getHost().replaceAll("^\\[|]$", "");
        int port = uri.getPort() < 0 ? 6379 : uri.getPort();
        return new Address(host, port, decoded(login[0]), login.length > 1 ? decoded(login[1]) : "");
    }

    /** The command by which a connection logs in, or an empty one where it need not. */
    List<String> login() {
        if (password.isEmpty() && user.isEmpty()) return List.of();
        String secret = password.isEmpty() ? "any" : password;
        return user.isEmpty() ? List.of("AUTH", secret) : List.of("AUTH", user, secret);
    }

    /**
     * The URL by which a client comes in as this user, who may be a world; an empty name is the user of the address.
     */
    String url(String name) {
        String as = name.isEmpty() ? user : name;
        String secret = password.isEmpty() && !as.isEmpty() ? "any" : password;
        String login = secret.isEmpty() ? "" : encoded(as) + ":" + encoded(secret) + "@";
        return "redis://" + login + (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}
