package dunlin;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Where the program is: DUNLIN_BINARY names it, or it is unpacked from the jar of this platform. It is never looked for
 * in PATH.
 *
 * <p>It is unpacked once, into the first folder of a list that can hold it and run it. Its name there has the version
 * and a part of its hash, so versions live beside each other; it is written beside and renamed, so several processes
 * can do so at once. A file that another user could have written is not run.
 */
final class Program {
    private static final String HOME = "/dunlin/program/" + platform() + "/";

    private Program() {}

    static String version() {
        return text("/dunlin/version");
    }

    /** Which platform this is, as in the names of the jars: {@code linux-x86_64}. */
    static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String name = system.startsWith("mac") ? "macos" : system.startsWith("windows") ? "windows" : system;
        return name + "-" + (machine.equals("amd64") ? "x86_64" : machine);
    }

    /** Runs what starts a program with the path of one, in the next place if that cannot be executed in one. */
    static Process started(Start start) {
        String named = Setting.of("DUNLIN_BINARY");
        if (named != null) return startedByName(start, named);
        String hash = text(HOME + "sha256");
        if (hash == null) {
            throw new DunlinException("there is no dunlin program for " + platform() + ": DUNLIN_BINARY is not set, and "
                + "the class path has no " + HOME.substring(1) + "; add the jar dunlin-" + version() + "-" + platform()
                + ", or set DUNLIN_BINARY to the path of a dunlin program");
        }
        List<String> failures = new ArrayList<>();
        for (Path folder : folders()) {
            try {
                return executed(start, unpacked(folder, "dunlin-" + version() + "-" + hash.substring(0, 16)));
            } catch (IOException | UnsupportedOperationException error) {
                failures.add(folder + " (" + reason(error) + ")");
            }
        }
        throw new DunlinException("the dunlin program of the jar could be put and run in no folder: "
            + String.join(", ", failures) + "; set DUNLIN_CACHE to a folder where programs can run, or DUNLIN_BINARY to "
            + "the path of a dunlin program");
    }

    /** Starts the program at a path. */
    interface Start {
        Process at(String path) throws IOException;
    }

    private static Process startedByName(Start start, String named) {
        if (!new File(named).isFile()) {
            throw new DunlinException("there is no program at " + named + ", which DUNLIN_BINARY names; set it to the path "
                + "of a dunlin program, or unset it to use the one of the jar");
        }
        try {
            return executed(start, Path.of(named).toAbsolutePath());
        } catch (IOException error) {
            throw new DunlinException("cannot run " + named + ", which DUNLIN_BINARY names (" + reason(error) + "); set it "
                + "to the path of a dunlin program for " + platform() + ", or unset it to use the one of the jar", error);
        }
    }

    private static Process executed(Start start, Path path) throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                return start.at(path.toString());
            } catch (IOException error) {
                // A child that another thread started just then holds the file open for writing until it runs a
                // program.
                if (attempt == 100 || !String.valueOf(error.getMessage()).contains("Text file busy")) throw error;
                Thread.yield();
            }
        }
    }

    /** The folders in which it may be put, the best first. */
    static List<Path> folders() {
        String only = Setting.of("DUNLIN_CACHE");
        if (only != null) return List.of(Path.of(only));
        List<Path> folders = new ArrayList<>();
        String cache = System.getenv("XDG_CACHE_HOME");
        String home = System.getProperty("user.home", "?");
        if (cache != null && !cache.isEmpty()) folders.add(Path.of(cache, "dunlin"));
        else if (!home.equals("?")) folders.add(Path.of(home, ".cache", "dunlin"));
        for (String output : List.of("target", "build")) {
            if (Files.isDirectory(Path.of(output))) folders.add(Path.of(output, "dunlin").toAbsolutePath());
        }
        folders.add(Path.of(System.getProperty("java.io.tmpdir"), "dunlin-" + System.getProperty("user.name", "user")));
        return folders;
    }

    private static Path unpacked(Path folder, String name) throws IOException {
        Path program = folder.resolve(platform().startsWith("windows") ? name + ".exe" : name);
        long size = Long.parseLong(text(HOME + "size"));
        if (isOurs(program, size)) return program;
        boolean isPosix = Files.getFileStore(existing(folder)).supportsFileAttributeView("posix");
        if (!Files.isDirectory(folder)) makeFolder(folder, isPosix);
        if (isPosix && isOthers(folder)) throw new IOException("others can write there");
        Path beside = Files.createTempFile(folder, name, ".part");
        try {
            // Files.copy would replace the private file by one with the mode of the umask, by which others may write it.
            try (InputStream data = Program.class.getResourceAsStream(HOME + "dunlin");
                    OutputStream file = Files.newOutputStream(beside)) {
                data.transferTo(file);
            }
            if (!beside.toFile().setExecutable(true)) throw new IOException("it cannot be made executable");
            Files.move(beside, program, StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            // On Windows a program that runs cannot be replaced; then it is there already.
            if (!isOurs(program, size)) throw error;
        } finally {
            Files.deleteIfExists(beside);
        }
        return program;
    }

    private static void makeFolder(Path folder, boolean isPosix) throws IOException {
        Files.createDirectories(folder.toAbsolutePath().getParent());
        try {
            if (isPosix) {
                Set<PosixFilePermission> own = PosixFilePermissions.fromString("rwx------");
                Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(own));
            } else {
                Files.createDirectory(folder);
            }
        } catch (FileAlreadyExistsException error) {
            // Another process may have made it meanwhile.
            if (!Files.isDirectory(folder)) throw error;
        }
    }

    private static Path existing(Path folder) {
        Path path = folder.toAbsolutePath();
        while (!Files.exists(path)) path = path.getParent();
        return path;
    }

    private static boolean isOurs(Path program, long size) throws IOException {
        return Files.isRegularFile(program, LinkOption.NOFOLLOW_LINKS) && Files.size(program) == size
            && Files.isExecutable(program)
            && (platform().startsWith("windows") || !isOthers(program) && !isOthers(program.getParent()));
    }

    /**
     * Whether somebody but this user, or the system's, could have written a file, or what is in a folder. Who owns a
     * link to it could lead elsewhere.
     */
    private static boolean isOthers(Path path) throws IOException {
        Path self = Path.of("/proc/self");
        String user = Files.exists(self) ? Files.getOwner(self).getName() : System.getProperty("user.name");
        List<String> owners =
            List.of(Files.getOwner(path, LinkOption.NOFOLLOW_LINKS).getName(), Files.getOwner(path).getName());
        Set<PosixFilePermission> given = Files.getPosixFilePermissions(path);
        return !List.of(user, "root").containsAll(owners)
            || given.contains(PosixFilePermission.GROUP_WRITE) || given.contains(PosixFilePermission.OTHERS_WRITE);
    }

    private static String reason(Exception error) {
        String message = String.valueOf(error.getMessage());
        if (message.contains("error=13") || message.contains("error: 13")) {
            return "Permission denied: its file system may forbid programs (noexec)";
        }
        // Those of files have only a path as their message.
        return error instanceof FileSystemException ? error.getClass().getSimpleName() + " " + message : message;
    }

    private static String text(String resource) {
        try (InputStream data = Program.class.getResourceAsStream(resource)) {
            return data == null ? null : new String(data.readAllBytes(), StandardCharsets.UTF_8).strip();
        } catch (IOException error) {
            return null;
        }
    }
}
