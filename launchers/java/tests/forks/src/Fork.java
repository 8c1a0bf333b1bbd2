import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dunlin.World;
import dunlin.junit.DunlinTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Tests that run in two JVMs at once: each has a server, which its tests share. */
@DunlinTest
abstract class Fork {
    /** Here each JVM leaves a file with its number, which has the number of its server. */
    private static final Path FOLDER = Path.of(System.getProperty("forks"));

    @Test
    void runsBesideAnotherJvm(World dunlin) throws IOException {
        Path own = FOLDER.resolve(String.valueOf(ProcessHandle.current().pid()));
        String server = dunlin.server().pid() + "\n";
        if (Files.exists(own)) assertEquals(server, Files.readString(own));
        Files.writeString(own, server);
        long start = System.nanoTime();
        while (count() < 2) {
            assertTrue(System.nanoTime() - start < 30_000_000_000L, "no other JVM came");
            Thread.onSpinWait();
        }
    }

    private static long count() throws IOException {
        try (var files = Files.list(FOLDER)) {
            return files.count();
        }
    }

    @RepeatedTest(50)
    void seesOnlyItsOwnKeys(World dunlin) {
        assertEquals(0L, dunlin.call("DBSIZE"));
        dunlin.call("SET", "key", "value");
    }
}

class FirstTest extends Fork {}

class SecondTest extends Fork {}

class ThirdTest extends Fork {}

class FourthTest extends Fork {}
