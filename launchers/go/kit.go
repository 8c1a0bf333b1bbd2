package dunlin

// The test kit: the clock, the state, faults, the journal, strict mode and waits, as the commands of DUNLIN.

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

func (w *World) time(words ...any) time.Time {
	moment, _ := w.must(append([]any{"DUNLIN"}, words...)...).(int)
	return time.UnixMilli(int64(moment)).UTC()
}

// Now is the time of the world's clock.
func (w *World) Now() time.Time { return w.time("ADVANCE", 0) }

// Advance moves the clock. Whatever is due on the way has happened when it returns.
func (w *World) Advance(duration time.Duration) time.Time {
	if duration%time.Millisecond != 0 {
		w.fail(fmt.Errorf("dunlin: the server's clock has whole milliseconds, so it cannot be advanced by %v", duration))
	}
	return w.time("ADVANCE", duration.Milliseconds())
}

// FastForward is Advance under miniredis's name.
func (w *World) FastForward(duration time.Duration) { w.Advance(duration.Round(time.Millisecond)) }

// AdvanceToNext moves the clock to the next moment when something is due, and tells whether there was one.
func (w *World) AdvanceToNext() (time.Time, bool) {
	moment, is := w.must("DUNLIN", "ADVANCE-TO-NEXT").(int)
	return time.UnixMilli(int64(moment)).UTC(), is
}

// SetTime sets the clock, forward or back.
func (w *World) SetTime(moment time.Time) { w.time("SET-TIME", moment.UnixMilli()) }

// Freeze stops the clock.
func (w *World) Freeze() time.Time { return w.time("FREEZE") }

// Resume lets the clock run.
func (w *World) Resume() { w.must("DUNLIN", "RESUME") }

// Speed lets the clock run this many times as fast as real time.
func (w *World) Speed(factor float64) { w.must("DUNLIN", "SPEED", factor) }

// Seed makes every random answer, and the order of SCAN, repeatable.
func (w *World) Seed(seed int) {
	w.must("DUNLIN", "SEED", seed)
	w.seed = int64(seed)
}

// Snapshot remembers data, settings, users, scripts and the clock.
func (w *World) Snapshot(name string) { w.must("DUNLIN", "SNAPSHOT", name) }

// Rollback returns to a snapshot, which remains.
func (w *World) Rollback(name string) { w.must("DUNLIN", "ROLLBACK", name) }

// Load replaces all data by that of a text, or of the bytes of an RDB file.
func (w *World) Load(data string) error {
	_, err := w.call("DUNLIN", "LOAD", data)
	return err
}

// LoadFile is Load with what the file has.
func (w *World) LoadFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return w.Load(string(data))
}

// Dump is the data of all databases as text: a line for each command that would create a part of it.
func (w *World) Dump() string { return text(w.must("DUNLIN", "DUMP")) }

// Diff is how the data differs from a text; it is empty if it does not.
func (w *World) Diff(data string) string { return text(w.must("DUNLIN", "DIFF", data)) }

// CheckDiff fails the test if the data differs from a text.
func (w *World) CheckDiff(t T, data string) {
	t.Helper()
	if found := w.Diff(data); found != "" {
		t.Errorf("the data is not what was expected:\n%s", found)
	}
}

// FaultRule is a rule without its failure: the method that names the failure adds the rule to the server.
type FaultRule struct {
	world *World
	words []any
}

// Fault is a failure for certain commands: Fault("dies").Command("LMOVE").Times(1).DropAfter().
func (w *World) Fault(name string) FaultRule {
	return FaultRule{w, []any{"DUNLIN", "FAULT", "ADD", name}}
}

func (f FaultRule) with(words ...any) FaultRule {
	return FaultRule{f.world, append(f.words[:len(f.words):len(f.words)], words...)}
}

func (f FaultRule) Command(name string) FaultRule      { return f.with("COMMAND", name) }
func (f FaultRule) Key(glob string) FaultRule          { return f.with("KEY", glob) }
func (f FaultRule) Client(name string) FaultRule       { return f.with("CLIENT", name) }
func (f FaultRule) Nth(match int) FaultRule            { return f.with("NTH", match) }
func (f FaultRule) Times(count int) FaultRule          { return f.with("TIMES", count) }
func (f FaultRule) Percent(chance float64) FaultRule   { return f.with("PERCENT", chance) }
func (f FaultRule) add(failure ...any)                 { f.world.must(f.with(failure...).words...) }
func (f FaultRule) DropBefore()                        { f.add("DROP-BEFORE") }
func (f FaultRule) DropAfter()                         { f.add("DROP-AFTER") }
func (f FaultRule) HalfReply()                         { f.add("HALF-REPLY") }
func (f FaultRule) SplitReply()                        { f.add("SPLIT-REPLY") }
func (f FaultRule) Silence()                           { f.add("SILENCE") }
func (f FaultRule) Error(message string)               { f.add("ERROR", message) }
func (f FaultRule) Delay(duration time.Duration)       { f.add("DELAY", duration.Milliseconds()) }
func (f FaultRule) Loading()                           { f.add("LOADING") }
func (f FaultRule) Busy()                              { f.add("BUSY") }
func (f FaultRule) ReadOnly()                          { f.add("READONLY") }
func (f FaultRule) OOM()                               { f.add("OOM") }
func (f FaultRule) MasterDown()                        { f.add("MASTERDOWN") }
func (f FaultRule) Moved(slot int, hostAndPort string) { f.add("MOVED", slot, hostAndPort) }
func (f FaultRule) Ask(slot int, hostAndPort string)   { f.add("ASK", slot, hostAndPort) }
func (f FaultRule) ClusterDown()                       { f.add("CLUSTERDOWN") }
func (f FaultRule) TryAgain()                          { f.add("TRYAGAIN") }
func (f FaultRule) CrossSlot()                         { f.add("CROSSSLOT") }

// RemoveFault removes a rule.
func (w *World) RemoveFault(name string) { w.must("DUNLIN", "FAULT", "REMOVE", name) }

// ClearFaults removes all rules.
func (w *World) ClearFaults() { w.must("DUNLIN", "FAULT", "CLEAR") }

// Journal has the commands of the world, from its start; its methods narrow it down. Direct methods are in it, too.
type Journal struct {
	world  *World
	filter []any
}

func (w *World) Journal() Journal { return Journal{world: w} }

func (j Journal) with(words ...any) Journal {
	return Journal{j.world, append(j.filter[:len(j.filter):len(j.filter)], words...)}
}

func (j Journal) Command(name string) Journal { return j.with("COMMAND", name) }
func (j Journal) Key(glob string) Journal     { return j.with("KEY", glob) }
func (j Journal) Client(name string) Journal  { return j.with("CLIENT", name) }
func (j Journal) Errors() Journal             { return j.with("ERRORS") }
func (j Journal) Redirected() Journal         { return j.with("REDIRECTED") }

func (j Journal) words(words ...any) []any {
	return append(append([]any{"DUNLIN", "JOURNAL"}, words...), j.filter...)
}

// Clear forgets the commands until now, whatever the filter.
func (j Journal) Clear() { j.world.must("DUNLIN", "JOURNAL", "CLEAR") }

// Count is the number of commands.
func (j Journal) Count() int { return number(j.world.must(j.words("COUNT")...)) }

// Export is the journal as a transcript, which can be replayed.
func (j Journal) Export() string { return text(j.world.must("DUNLIN", "JOURNAL", "EXPORT")) }

// ExpectExactly fails the test, and lists the commands, unless there are so many.
func (j Journal) ExpectExactly(t T, count int) { t.Helper(); j.expect(t, "EXACTLY", count) }
func (j Journal) ExpectAtLeast(t T, count int) { t.Helper(); j.expect(t, "AT-LEAST", count) }
func (j Journal) ExpectAtMost(t T, count int)  { t.Helper(); j.expect(t, "AT-MOST", count) }
func (j Journal) ExpectNone(t T)               { t.Helper(); j.expect(t, "NONE") }

func (j Journal) expect(t T, words ...any) {
	t.Helper()
	if _, err := j.world.call(j.words(append([]any{"EXPECT"}, words...)...)...); err != nil {
		t.Errorf("%s", strings.TrimPrefix(err.Error(), "ERR "))
	}
}

// WaitFor waits until the journal has so many of the commands.
func (j Journal) WaitFor(count int, timeout time.Duration) error {
	return j.world.wait(timeout, append([]any{"JOURNAL", count}, j.filter...)...)
}

// Entry is a command in the journal.
type Entry struct {
	Number     int
	Time       time.Time
	Duration   time.Duration
	Client     int
	ClientName string
	Database   int
	Source     string // client, script or transaction
	Command    []string
	Reply      string // as redis-cli shows it
	IsBlocked  bool   // it has no reply yet
}

// Entries are the commands.
func (j Journal) Entries() []Entry {
	entries, err := j.entries()
	if err != nil {
		j.world.fail(err)
	}
	return entries
}

func (j Journal) entries() (entries []Entry, err error) {
	reply, err := j.world.call(j.words("LIST")...)
	for _, each := range maps(reply) {
		entries = append(entries, Entry{
			number(each["number"]), time.UnixMicro(int64(number(each["unix-time-microseconds"]))).UTC(),
			time.Duration(number(each["duration-microseconds"])) * time.Microsecond,
			number(each["client"]), text(each["client-name"]), number(each["database"]), text(each["source"]),
			texts(each["command"]), text(each["reply"]), each["reply"] == nil,
		})
	}
	return entries, err
}

func (e Entry) String() string {
	who, words, reply := e.ClientName, make([]string, len(e.Command)), "(blocked)"
	if who == "" {
		who = fmt.Sprintf("client %d", e.Client)
	}
	for place, word := range e.Command {
		if words[place] = word; word == "" || strings.ContainsAny(word, " \t\r\n\"") {
			words[place] = fmt.Sprintf("%q", word)
		}
	}
	if !e.IsBlocked {
		reply = strings.Join(strings.Split(strings.TrimSpace(e.Reply), "\n"), "; ")
	}
	return fmt.Sprintf("%d %s: %s -> %s", e.Number, who, cut(strings.Join(words, " ")), cut(reply))
}

func cut(line string) string {
	if len(line) <= 120 {
		return line
	}
	return strings.ToValidUTF8(line[:117], "") + "..."
}

// Strict sets a rule of strict mode, or "ALL" or "CLUSTER" of them, to a level: "off", "warn" or "error".
func (w *World) Strict(rule, level string) { w.must("DUNLIN", "STRICT", "SET", rule, level) }

// StrictLimit sets a rule to a level and a limit of its own.
func (w *World) StrictLimit(rule, level string, limit int) {
	w.must("DUNLIN", "STRICT", "SET", rule, level, "LIMIT", limit)
}

// StrictAllow lets a rule, or "ALL" or "CLUSTER" of them, ignore keys that match the glob.
func (w *World) StrictAllow(rule, glob string) { w.must("DUNLIN", "STRICT", "ALLOW", rule, glob) }

// ClearFindings forgets what strict mode has found.
func (w *World) ClearFindings() { w.must("DUNLIN", "STRICT", "CLEAR") }

// Finding is what strict mode has found.
type Finding struct {
	Rule, Level, Text, Command string
	Times                      int
}

// Findings are what strict mode has found.
func (w *World) Findings() []Finding {
	findings, err := w.findings()
	if err != nil {
		w.fail(err)
	}
	return findings
}

func (w *World) findings() (findings []Finding, err error) {
	reply, err := w.call("DUNLIN", "STRICT", "FINDINGS")
	for _, each := range maps(reply) {
		findings = append(findings, Finding{
			text(each["rule"]), text(each["level"]), text(each["text"]), text(each["command"]), number(each["times"]),
		})
	}
	return findings, err
}

// WaitUntilBlocked waits until so many clients are blocked on a key of the selected database.
func (w *World) WaitUntilBlocked(key string, count int, timeout time.Duration) error {
	return w.wait(timeout, "BLOCKED", key, count)
}

// WaitForSubscribers waits until so many clients are subscribed to a channel.
func (w *World) WaitForSubscribers(channel string, count int, timeout time.Duration) error {
	return w.wait(timeout, "SUBSCRIBERS", channel, count)
}

// WaitUntilFired waits until a fault has fired so many times.
func (w *World) WaitUntilFired(fault string, times int, timeout time.Duration) error {
	return w.wait(timeout, "FAULT", fault, times)
}

// WaitForClients waits until the application has exactly so many connections.
func (w *World) WaitForClients(count int, timeout time.Duration) error {
	p := w.live()
	if p == nil {
		return errClosed
	}
	c, err := p.take()
	if err != nil {
		return err
	}
	p.give(c, true)
	p.Lock()
	others := p.open - 1
	p.Unlock()
	return w.wait(timeout, "CLIENTS", count+others)
}

// wait has a timeout of real time: the clock of the world may be frozen, or moved.
func (w *World) wait(timeout time.Duration, words ...any) error {
	_, err := w.RedisDB.within(timeout, append([]any{"DUNLIN", "WAIT"}, words...))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("dunlin: waited %v in vain for %v", timeout, words)
	}
	return err
}
