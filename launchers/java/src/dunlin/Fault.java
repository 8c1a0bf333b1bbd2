package dunlin;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A rule without its failure: the method that names the failure adds the rule to the server. */
public final class Fault {
    private final World world;
    private final List<Object> words;

    Fault(World world, String name) {
        this(world, List.of("FAULT", "ADD", name));
    }

    private Fault(World world, List<Object> words) {
        this.world = world;
        this.words = words;
    }

    /** Only for commands of this name. */
    public Fault command(String name) {
        return with("COMMAND", name);
    }

    /** Only for commands with a key that matches this glob. */
    public Fault key(String pattern) {
        return with("KEY", pattern);
    }

    /** Only for clients of this name. */
    public Fault client(String name) {
        return with("CLIENT", name);
    }

    /** Only from this match on; it fires once unless {@link #times} says more. */
    public Fault nth(int match) {
        return with("NTH", match);
    }

    /** At most so many times. */
    public Fault times(int count) {
        return with("TIMES", count);
    }

    /** By chance, which follows from the seed. */
    public Fault percent(double share) {
        return with("PERCENT", share);
    }

    /** The command runs this much later by the server's clock. */
    public void delay(Duration duration) {
        add("DELAY", World.milliseconds(duration));
    }

    /** The command is not run; its reply is this error, whose text begins with its code: {@code TRYAGAIN later}. */
    public void error(String message) {
        add("ERROR", message);
    }

    /** Commands with keys are redirected to the node at this address. */
    public void moved(int slot, String address) {
        add("MOVED", slot, address);
    }

    /** Commands with keys are redirected to the node at this address, each time anew. */
    public void ask(int slot, String address) {
        add("ASK", slot, address);
    }

    /** The connection closes; the command was not run. */
    public void dropBefore() {
        add("DROP-BEFORE");
    }

    /** The command takes effect; the connection closes without its reply. */
    public void dropAfter() {
        add("DROP-AFTER");
    }

    /** The command takes effect; the connection closes in the middle of its reply. */
    public void halfReply() {
        add("HALF-REPLY");
    }

    /** Each byte of the reply is written separately. */
    public void splitReply() {
        add("SPLIT-REPLY");
    }

    /** The command is not run; the connection stays open and gets no more replies. */
    public void silence() {
        add("SILENCE");
    }

    /** The server refuses what one that loads its data refuses. */
    public void loading() {
        add("LOADING");
    }

    /** The server refuses what one that runs a long script refuses. */
    public void busy() {
        add("BUSY");
    }

    /** The server refuses what a read-only replica refuses. */
    public void readonly() {
        add("READONLY");
    }

    /** The server refuses what one without memory refuses. */
    public void oom() {
        add("OOM");
    }

    /** The server refuses what a replica without its master refuses. */
    public void masterdown() {
        add("MASTERDOWN");
    }

    /** Commands with keys are refused, as by a node of a cluster that is down. */
    public void clusterdown() {
        add("CLUSTERDOWN");
    }

    /** Commands with several keys are refused, as by a node of which some of these have moved. */
    public void tryagain() {
        add("TRYAGAIN");
    }

    /** Commands with several keys are refused, as if their keys were in different slots. */
    public void crossslot() {
        add("CROSSSLOT");
    }

    private Fault with(Object... more) {
        List<Object> all = new ArrayList<>(words);
        all.addAll(Arrays.asList(more));
        return new Fault(world, all);
    }

    private void add(Object... failure) {
        world.dunlin(with(failure).words.toArray());
    }
}
