import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dunlin.CommandException;
import dunlin.Dunlin;
import dunlin.DunlinException;
import dunlin.World;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileOwnerAttributeView;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;

/** How the program is found and started, and that it never outlives the tests. */
class ServerTest {
    @TempDir
    Path folder;

    @AfterEach
    void forget() {
        for (String name : List.of("binary", "cache", "url", "seed")) System.clearProperty("dunlin." + name);
    }

    static String refusal(String... arguments) {
        return assertThrows(DunlinException.class, () -> Dunlin.start(arguments).close()).getMessage();
    }

    static void assertSays(String said, String... parts) {
        for (String part : parts) assertTrue(said.contains(part), () -> "'" + part + "' is not in: " + said);
    }

    /** Makes DUNLIN_BINARY name a script. */
    void use(String lines) throws IOException {
        Path script = Files.writeString(folder.resolve("dunlin"), "#!/bin/sh\n" + lines + "\n");
        assertTrue(script.toFile().setExecutable(true));
        System.setProperty("dunlin.binary", script.toString());
    }

    static String version() throws IOException {
        try (var resource = Dunlin.class.getResourceAsStream("/dunlin/version")) {
            return new String(resource.readAllBytes()).strip();
        }
    }

    @Test
    void twoServersDifferInPortAndData() {
        try (Dunlin one = Dunlin.start(); Dunlin two = Dunlin.start()) {
            assertNotEquals(one.port(), two.port());
            one.call("SET", "key", "value");
            assertEquals(null, two.call("GET", "key"));
            try (Jedis jedis = new Jedis(one.uri())) {
                assertEquals("value", jedis.get("key"));
            }
        }
    }

    @Test
    void argumentsAreThoseOfTheCommandLine() {
        try (Dunlin server = Dunlin.start("--databases", "3", "--requirepass", "a/b c"); World world = server.world()) {
            assertEquals(List.of("databases", "3"), server.call("CONFIG", "GET", "databases"));
            try (Jedis jedis = new Jedis(server.uri()); Jedis inside = new Jedis(world.uri())) {
                jedis.set("key", "value");
                assertEquals(null, inside.get("key"));
            }
        }
    }

    @Test
    void aServerThatWasClosedCanBeClosedAgain() {
        Dunlin server = Dunlin.start();
        server.close();
        server.close();
        assertEquals("the server is closed", assertThrows(DunlinException.class, server::now).getMessage());
        assertSays(server.log(), "Ready to accept connections", "bye bye");
    }

    @Test
    void theSharedServerStartsOnceAndAgainAfterItsEnd() {
        Dunlin first = Dunlin.shared();
        assertEquals(first, Dunlin.shared());
        first.close();
        assertEquals("PONG", Dunlin.shared().call("PING"));
    }

    @Test
    void aVariableThatNamesNoProgramIsNamed() {
        System.setProperty("dunlin.binary", "/nowhere/dunlin");
        assertSays(refusal(), "there is no program at /nowhere/dunlin, which DUNLIN_BINARY names; ");
    }

    @Test
    void aFileThatIsNoProgramIsRefused() throws IOException {
        Path text = Files.writeString(folder.resolve("dunlin"), "text");
        System.setProperty("dunlin.binary", text.toString());
        assertSays(refusal(), "cannot run " + text, "Permission denied");
    }

    @Test
    void anotherVersionIsRefusedByName() throws IOException {
        use("echo '{\"dunlin\":\"9.9.9\",\"url\":\"redis://127.0.0.1:1\"}'; exec cat");
        assertSays(refusal(), "is dunlin 9.9.9, but this package needs dunlin " + version());
    }

    @Test
    void aProgramThatDoesNotAnnounceShowsWhatItSaid() throws IOException {
        use("echo bad directive >&2; exit 1");
        assertSays(refusal(), "did not announce a server", "\n  bad directive");
    }

    @Test
    void aProgramThatSaysNothingIsGivenUp() throws IOException {
        use("echo starting >&2; exec cat >/dev/null");
        assertSays(refusal(), "did not announce a server within 10 s", "\n  starting");
    }

    @Test
    void anAnnouncementThatComesByteByByteIsRead() throws IOException {
        try (Dunlin real = Dunlin.start()) {
            use("printf '%s\\n' '{\"dunlin\":\"" + version() + "\",\"url\":\"" + real.url()
                + "\"}' | dd bs=1 2>/dev/null; exec cat");
            try (Dunlin server = Dunlin.start()) {
                assertEquals(real.port(), server.port());
            }
        }
    }

    @Test
    void aDirectiveThatDoesNotExistIsToldInTheWordsOfTheServer() {
        assertSays(refusal("--no-such", "1"), "could not start: ", "no-such", "Bad directive");
    }

    @Test
    void thePageHasALinkWithItsTokenWhereItIsServed() throws Exception {
        try (Dunlin server = Dunlin.start("--page-port", "0")) {
            String[] link = server.pageUrl().split("#token=");
            var asked = HttpRequest.newBuilder(URI.create(link[0] + "command"))
                .header("X-Dunlin", link[1])
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"commands\":[[\"PING\"]]}"))
                .build();
            var answer = HttpClient.newHttpClient().send(asked, HttpResponse.BodyHandlers.ofString());
            assertEquals("{\"replies\":[{\"status\":\"PONG\"}]}", answer.body());
        }
        assertEquals(null, Dunlin.shared().pageUrl());
    }

    @Test
    void aServerStopsWhileAClientIsBlocked() throws Exception {
        Dunlin server = Dunlin.start();
        try (Jedis client = new Jedis(server.uri())) {
            var blocked = CompletableFuture.supplyAsync(() -> client.blpop(0, "queue"));
            server.waitUntilBlocked("queue");
            server.close();
            assertFalse(runs(server.pid()));
            assertSays(server.log(), "bye bye"); // it was not killed, as one that does not stop is
            var ended = assertThrows(ExecutionException.class, blocked::get);
            assertEquals(JedisConnectionException.class, ended.getCause().getClass());
        }
    }

    @Test
    void aPortThatIsTakenIsNamed() {
        try (Dunlin first = Dunlin.start()) {
            assertSays(refusal("--port", "" + first.port()), "" + first.port(), "ddress ", "in use");
        }
    }

    @Test
    void aServerThatRunsIsUsed() {
        try (Dunlin first = Dunlin.start()) {
            System.setProperty("dunlin.url", first.url());
            try (Dunlin handle = Dunlin.start(); Dunlin other = Dunlin.start(); World world = handle.world()) {
                assertFalse(handle.isOwn());
                assertEquals(4, first.worlds().size(), first.worlds()::toString);
                assertEquals(world.name(), world.call("DUNLIN", "WORLD"));
                handle.call("SET", "key", "value");
                assertEquals("", first.dump() + other.dump() + world.dump());
                try (Jedis byUrl = new Jedis(handle.uri()); Jedis byPort = new Jedis(handle.host(), handle.port())) {
                    assertEquals("value", byUrl.get("key"));
                    assertEquals("value", byPort.get("key"));
                }
            }
            assertEquals(1, first.worlds().size(), first.worlds()::toString);
        }
    }

    @Test
    void aClusterThatRunsIsReachedByItsPortAndAUser() {
        try (Dunlin first = Dunlin.start("--cluster", "1")) {
            System.setProperty("dunlin.url", first.url());
            try (Dunlin handle = Dunlin.start(); Jedis jedis = new Jedis(handle.host(), handle.port())) {
                assertEquals(first.port(), handle.port());
                jedis.auth(handle.username(), handle.password());
                jedis.set("key", "value");
                assertEquals("value", handle.call("GET", "key"));
                assertEquals("", first.dump());
            }
        }
    }

    @Test
    void aSeedThatIsNoNumberIsNamed() {
        System.setProperty("dunlin.seed", "seven");
        var refused = assertThrows(DunlinException.class, () -> Dunlin.shared().world());
        assertEquals("DUNLIN_SEED must be a whole number, and not 'seven'", refused.getMessage());
    }

    @Test
    void aServerWithoutTheTestKitIsRefused() throws IOException {
        try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            var client = CompletableFuture.runAsync(() -> refuse(other));
            System.setProperty("dunlin.url", "redis://127.0.0.1:" + other.getLocalPort());
            assertSays(refusal(), "has no test kit: ERR unknown command", "start it with 'dunlin --test-kit yes'");
            client.join();
        }
        System.setProperty("dunlin.url", "http://example");
        assertSays(refusal(), "'http://example' is no address of a server");
    }

    @Test
    void aLoginThatIsRefusedLeavesNoConnection() {
        try (Dunlin server = Dunlin.start("--requirepass", "right")) {
            System.setProperty("dunlin.url", server.url().replace("right", "wrong"));
            assertSays(refusal(), "WRONGPASS");
            server.waitForClients(0, Duration.ofSeconds(1));
        }
    }

    /** Answers one client as a server of Redis does that does not know DUNLIN. */
    static void refuse(ServerSocket server) {
        try (Socket client = server.accept()) {
            client.getOutputStream().write("-ERR unknown command 'DUNLIN'\r\n".getBytes());
            client.getInputStream().readAllBytes();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Test
    void aPlaceThatDoesNotServeIsNamed() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        System.setProperty("dunlin.cache", file.toString());
        assertSays(refusal(), "could be put and run in no folder: " + file, "set DUNLIN_CACHE");
    }

    @Test
    void aFolderThatOthersCanWriteInIsNotUsed() throws IOException {
        Path open = Files.createDirectory(folder.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
        System.setProperty("dunlin.cache", open.toString());
        assertSays(refusal(), open + " (others can write there)");
    }

    @Test
    void aFolderThatALinkOfAnotherUserLeadsToIsNotUsed() throws IOException {
        Path real = Files.createDirectory(folder.resolve("real"));
        Path link = Files.createSymbolicLink(folder.resolve("link"), real);
        System.setProperty("dunlin.cache", link.toString());
        Dunlin.start().close();
        try {
            var other = link.getFileSystem().getUserPrincipalLookupService().lookupPrincipalByName("nobody");
            Files.getFileAttributeView(link, FileOwnerAttributeView.class, LinkOption.NOFOLLOW_LINKS).setOwner(other);
        } catch (IOException error) {
            Assumptions.abort("only root can give a link away");
        }
        assertSays(refusal(), link + " (others can write there)");
    }

    /** The program as a first start has unpacked it into a new folder. */
    private Path unpacked() throws IOException {
        Path cache = folder.resolve("cache");
        System.setProperty("dunlin.cache", cache.toString());
        Dunlin.start().close();
        try (var files = Files.list(cache)) {
            return files.findFirst().orElseThrow();
        }
    }

    @Test
    void aProgramThatOthersCouldHaveReplacedIsReplaced() throws IOException {
        Path program = unpacked();
        String script = "#!/bin/sh\necho no program of ours\n";
        Files.writeString(program, script + "#".repeat((int) Files.size(program) - script.length()));
        Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwx-w----"));
        Dunlin.start().close();
        assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(program)));
    }

    @Test
    void aProgramThatWasCutOffIsReplaced() throws IOException {
        Path program = unpacked();
        Files.writeString(program, "");
        Dunlin.start().close();
        assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(program)));
        try (var files = Files.list(program.getParent())) {
            assertEquals(List.of(program), files.toList());
        }
    }

    /** Another process of Java with a server. */
    static Process start(Map<String, String> environment, Path working, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(
            List.of(System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1", "-Xshare:auto"));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).directory(working.toFile());
        builder.environment().clear();
        builder.environment().putAll(environment);
        builder.environment().put("CLASSPATH", System.getProperty("java.class.path"));
        return builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    static long[] said(Process process) throws IOException {
        String line = new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
        assertNotEquals(null, line);
        return Arrays.stream(line.split(" ")).mapToLong(Long::parseLong).toArray();
    }

    /** How many rounds the environment asks for, or else the number that is given. */
    private static int asked(int otherwise) {
        String asked = System.getenv("DUNLIN_TEST_KILLS");
        return asked == null ? otherwise : Integer.parseInt(asked);
    }

    @Test
    @Timeout(value = 1, unit = TimeUnit.HOURS)
    void aServerEndsWithAProcessThatIsKilled() throws Exception {
        // Where a thousand are asked for, each server must be gone in time, which a machine that does much else may not do.
        List<Long> took = new ArrayList<>();
        for (int round = 0; round < asked(3); round++) {
            Process holder = start(Map.of(), folder, "Holder");
            long[] server = said(holder);
            try (Socket client = new Socket("127.0.0.1", (int) server[1])) {
                client.getOutputStream().write("PING\r\n".getBytes());
                assertEquals("+PONG\r\n", new String(client.getInputStream().readNBytes(7)));
                // The system takes its time to end a JVM with many threads; until then the server has nothing to go by.
                holder.destroyForcibly().waitFor();
                long start = System.nanoTime();
                awaitEnd(server[0]);
                took.add((System.nanoTime() - start) / 1_000_000);
            }
        }
        took.sort(null);
        System.out.println("after " + took.size() + " JVMs were killed, their servers were gone within " + took.get(took.size() / 2)
            + " ms, at most " + took.get(took.size() - 1));
        assertTrue(took.get(System.getenv("DUNLIN_TEST_KILLS") == null ? 0 : took.size() - 1) < 100, took::toString);
    }

    /** The processes with this text in their environment, less the one that was given it. */
    static List<Long> childrenWith(String mark, long parent) throws IOException {
        List<Long> found = new ArrayList<>();
        try (var all = Files.newDirectoryStream(Path.of("/proc"), "[0-9]*")) {
            for (Path each : all) {
                long pid = Long.parseLong(each.getFileName().toString());
                try {
                    if (pid != parent && new String(Files.readAllBytes(each.resolve("environ"))).contains(mark)) found.add(pid);
                } catch (IOException gone) {
                    // It has ended, or is another user's.
                }
            }
        }
        return found;
    }

    @Test
    void aProcessThatIsKilledWhileItsServerStartsLeavesNone() throws Exception {
        for (int round = 0; round < 4; round++) {
            String mark = ProcessHandle.current().pid() + "-" + round;
            Process holder = start(Map.of("DUNLIN_TEST_MARK", mark), folder, "Holder");
            while (childrenWith("DUNLIN_TEST_MARK=" + mark, holder.pid()).isEmpty()) {
                assertTrue(holder.isAlive(), "it has started no server");
            }
            holder.destroyForcibly().waitFor();
            for (long server : childrenWith("DUNLIN_TEST_MARK=" + mark, holder.pid())) awaitEnd(server);
        }
    }

    @Test
    void aServerEndsWithAProcessThatExits() throws Exception {
        Process holder = start(Map.of(), folder, "Holder", "exit");
        long[] server = said(holder);
        assertTrue(holder.waitFor(10, TimeUnit.SECONDS));
        awaitEnd(server[0]);
    }

    @Test
    void aServerIsStartedAheadWhereThatIsAskedFor() throws Exception {
        Process session = start(Map.of("DUNLIN_AHEAD", "true"), folder, "Ahead");
        long[] said = said(session);
        assertEquals(said[0], said[1], "the first server is the one that tests share");
        assertTrue(session.waitFor(10, TimeUnit.SECONDS));
        awaitEnd(said[0]);
    }

    @Test
    void aServerIsStartedForAPlanWithATestThatNeedsOne() throws Exception {
        Process plans = start(Map.of(), folder, "Plans");
        long[] said = said(plans);
        assertEquals(0, said[0], "no test of the first plan needs a server");
        assertEquals(said[1], said[2], "the first server is the one that tests share");
        assertTrue(plans.waitFor(10, TimeUnit.SECONDS));
        awaitEnd(said[1]);
    }

    @Test
    void noServerIsStartedForAPlanWhereThatIsForbidden() throws Exception {
        Process plans = start(Map.of("DUNLIN_AHEAD", "false"), folder, "Plans", "none");
        assertEquals(0, said(plans)[1]);
    }

    /** Looks until a process is gone, or is only waited for by its parent; that of an orphan may never do so. */
    static void awaitEnd(long pid) throws IOException {
        long start = System.nanoTime();
        while (runs(pid)) {
            assertTrue(System.nanoTime() - start < 5_000_000_000L, "the server is still there");
            Thread.yield();
        }
    }

    static boolean runs(long pid) throws IOException {
        try {
            String status = Files.readString(Path.of("/proc/" + pid + "/stat"));
            return !"ZX".contains(status.substring(status.lastIndexOf(')') + 2).substring(0, 1));
        } catch (NoSuchFileException gone) {
            return false;
        } catch (IOException error) {
            // It ended while its file was read.
            return Files.exists(Path.of("/proc/" + pid));
        }
    }

    @Test
    void withoutAHomeTheProgramIsPutIntoTheNextFolderThatServes() throws Exception {
        Path working = Files.createDirectories(folder.resolve("project/target")).getParent();
        Process holder = start(Map.of(), working, "-Duser.home=/dev/null", "Holder", "exit");
        said(holder);
        try (var files = Files.list(working.resolve("target/dunlin"))) {
            assertEquals(1, files.count());
        }
        Path temporary = Files.createDirectory(folder.resolve("temporary"));
        said(start(Map.of(), folder, "-Duser.home=?", "-Djava.io.tmpdir=" + temporary, "Holder", "exit"));
        try (var files = Files.list(temporary)) {
            assertTrue(files.anyMatch(each -> each.getFileName().toString().startsWith("dunlin-")));
        }
    }

    @Test
    @Timeout(value = 1, unit = TimeUnit.HOURS)
    void eightProcessesUnpackAtOnce() throws Exception {
        for (int round = 0; round < Math.min(asked(1), 50); round++) {
            Path cache = folder.resolve("cache" + round);
            List<Process> holders = new ArrayList<>();
            for (int each = 0; each < 8; each++) {
                holders.add(start(Map.of("DUNLIN_CACHE", cache.toString()), folder, "Holder", "exit"));
            }
            for (Process holder : holders) said(holder);
            try (var files = Files.list(cache)) {
                assertEquals(1, files.count(), "one program, and nothing that was left half written");
            }
        }
    }

    @Test
    void aCommandThatIsRefusedSaysWhy() {
        var refused = assertThrows(CommandException.class, () -> Dunlin.shared().call("INCR"));
        assertSays(refused.getMessage(), "ERR wrong number");
    }
}
