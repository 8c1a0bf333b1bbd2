package tests

// What miniredis does not have: the clock, snapshots, faults, the journal, strict mode, waits, and worlds.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dunlin"
)

const soon = 5 * time.Second

func TestAFrozenClockStandsStill(t *testing.T) {
	s, l := dunlin.RunT(t, dunlin.Frozen()), line{t}
	moment := s.Now()
	s.Set("k", "v")
	s.SetTTL("k", 90*time.Second)
	if later := s.Advance(time.Minute); later.Sub(moment) != time.Minute {
		t.Errorf("it is %v, and was %v", later, moment)
	}
	next, is := s.AdvanceToNext()
	l.is(told(next.Sub(moment), is, s.Exists("k")), 90*time.Second, true, false)
	_, is = s.AdvanceToNext()
	l.is(told(is), false)
	s.Speed(1000)
	s.Resume()
	s.Freeze()
	l.is(told(s.Now().Sub(s.Now())), time.Duration(0))
}

func TestADurationThatTheClockDoesNotHaveIsRefused(t *testing.T) {
	r := run(t, func(s *dunlin.World) { s.Advance(time.Microsecond) })
	line{t}.is(r.fatal, "dunlin: the server's clock has whole milliseconds, so it cannot be advanced by 1µs")
}

func TestASeedRepeatsRandomAnswers(t *testing.T) {
	draw := func(seed int64) string {
		s := dunlin.RunT(t, dunlin.Seeded(seed))
		s.SAdd("s", strings.Split("abcdefghijklmnop", "")...)
		return told(s.Call("SRANDMEMBER", "s", 5))
	}
	if draw(7) != draw(7) || draw(7) == draw(8) {
		t.Error("the seed does not decide")
	}
}

func TestARollbackReturnsToTheSnapshot(t *testing.T) {
	s, l := dunlin.RunT(t, dunlin.Fixture("SET k v\nSADD s a b")), line{t}
	s.Snapshot("fixture")
	s.FlushAll()
	s.Rollback("fixture")
	s.CheckDiff(t, "SADD s a b\nSET k v")
	l.is(s.Diff("SET k v"), "+ SADD s a\n+ SADD s b\n")
	r := &recorder{}
	s.CheckDiff(r, "")
	l.is(told(len(r.errors)), 1)
}

func TestDataIsLoadedFromTextAndFiles(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	l.is(told(s.Load("GET k")), "ERR line 1: 'get' does not write data")
	file := filepath.Join(t.TempDir(), "fixture.txt")
	if err := os.WriteFile(file, []byte("SELECT 2\nSET k v\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.is(told(s.LoadFile(file), s.Dump()), nil, "SELECT 2\nSET k v\n")
	if s.LoadFile(file+".none") == nil {
		t.Error("there is no such file")
	}
}

func TestAFaultStrikesTheCommandsThatItIsAbout(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	c := connect(t, s.Addr())
	s.Fault("refused").Command("SET").Key("k*").Nth(2).Error("TRYAGAIN later")
	l.is(c.call("SET k 1"), "+OK")
	l.is(c.call("SET other 1"), "+OK")
	l.is(c.call("SET k 2"), "-TRYAGAIN later")
	l.is(told(s.WaitUntilFired("refused", 1, soon)), nil)
	s.RemoveFault("refused")
	s.Fault("loading").Times(1).Loading()
	l.is(c.call("GET k"), "-LOADING Redis is loading the dataset in memory")
	s.Fault("dies").Command("LPUSH").DropAfter()
	l.is(c.call("LPUSH l x"), "closed")
	s.ClearFaults()
	s.CheckList(t, "l", "x")
	c = connect(t, s.Addr())
	s.Fault("cluster").Command("MSET").Ask(7, "127.0.0.1:1")
	l.is(c.call("MSET a b c d"), "-ASK 7 127.0.0.1:1")
	s.Fault("cluster").Command("MSET").ClusterDown()
	l.is(c.call("MSET a b c d"), "-CLUSTERDOWN The cluster is down")
	s.Fault("cluster").Command("MSET").TryAgain()
	l.is(c.call("MSET a b c d"), "-TRYAGAIN Multiple keys request during rehashing of slot")
	s.Fault("cluster").Command("MSET").CrossSlot()
	l.is(c.call("MSET a b c d"), "-CROSSSLOT Keys in request don't hash to the same slot")
}

func TestTheJournalHasWhatTheApplicationDid(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	c := connect(t, s.Addr())
	c.call("CLIENT SETNAME shop")
	c.call("HSET cart:1 apple 1")
	c.call("GET cart:1")
	s.Journal().Command("HSET").Key("cart:*").ExpectExactly(t, 1)
	s.Journal().Client("shop").ExpectAtLeast(t, 2)
	s.Journal().Errors().ExpectAtMost(t, 1)
	s.Journal().Command("KEYS").ExpectNone(t)
	l.is(told(s.Journal().Command("GET").WaitFor(1, soon)), nil)
	entries := s.Journal().Errors().Entries()
	if len(entries) != 1 || entries[0].ClientName != "shop" || told(entries[0].Command) != "[GET cart:1]" {
		t.Errorf("the errors are %v", entries)
	}
	if text := s.Journal().Export(); !strings.Contains(text, "HSET cart:1 apple 1") {
		t.Error(text)
	}
	r := &recorder{}
	s.Journal().Command("HSET").ExpectNone(r)
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "HSET cart:1 apple 1") {
		t.Errorf("told is %q", r.errors)
	}
	s.Journal().Clear()
	l.is(told(s.Journal().Count()), 0)
}

func TestAWaitEndsWhenWhatItWaitsForIsThere(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	worker, listener := connect(t, s.Addr()), connect(t, s.Addr())
	worker.send("BLPOP queue 0")
	l.is(told(s.WaitUntilBlocked("queue", 1, soon)), nil)
	listener.send("SUBSCRIBE news")
	l.is(told(s.WaitForSubscribers("news", 1, soon), s.WaitForClients(2, soon)), nil, nil)
	s.Push("queue", "job")
	worker.reply()
	worker.Close()
	l.is(told(s.WaitForClients(1, soon)), nil)
}

func TestAWaitInVainEndsWithoutTheClockOfTheWorldAndLeavesItsData(t *testing.T) {
	s, l := dunlin.RunT(t, dunlin.Frozen()), line{t}
	s.Set("k", "v")
	l.is(told(s.WaitUntilBlocked("queue", 1, time.Millisecond)), "dunlin: waited 1ms in vain for [BLOCKED queue 1]")
	l.is(told(s.Get("k")), "v", nil)
}

func TestNoMoveOfTheClockEndsAWait(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	ended := make(chan error)
	go func() { ended <- s.WaitUntilBlocked("queue", 1, time.Minute) }()
	timeUntil(t, func() bool {
		list, _ := s.Call("CLIENT", "LIST")
		return strings.Contains(told(list), " cmd=dunlin|wait")
	})
	s.Speed(1000)
	s.Advance(time.Hour)
	connect(t, s.Addr()).send("BLPOP queue 0")
	l.is(told(<-ended), nil)
}

func TestMessagesWaitForASubscriberUntilItCloses(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	sub := s.NewSubscriber()
	s.SetError("BUSY a script")
	c := connect(t, s.Addr())
	l.is(told(sub.Subscribe("news"), c.call("GET k")), 1, "-BUSY a script")
	s.SetError("")
	l.is(c.call("GET k"), "$-1")
	for round := range 1000 {
		s.Publish("news", fmt.Sprint(round))
	}
	l.is(told(sub.Psubscribe("n*"), s.CommandCount()), 2, 1) // though no message was read
	for round := range 10 {
		l.is((<-sub.Messages()).Message, round)
	}
	sub.Close()
	sub.Close()
	for range sub.Messages() {
		t.Error("it is closed")
	}
	l.is(told(s.Publish("news", "nobody")), 0)
	ended := s.NewSubscriber()
	ended.Subscribe("news")
	s.Close()
	_, is := <-ended.Messages()
	l.is(told(is), false)
}

func TestManyWorldsAtOnceDoNotSeeEachOther(t *testing.T) {
	for round := range 200 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			s, l := dunlin.RunT(t), line{t}
			c := connect(t, s.Addr())
			l.is(c.call("INCR k"), ":1")
			s.FastForward(time.Duration(round) * time.Hour)
			s.Publish("news", "hello")
			l.is(told(s.Keys()), []string{"k"})
			c.call("FLUSHALL")
		})
	}
}

func TestChannelsScriptsAndClocksOfWorldsAreApart(t *testing.T) {
	one, other, l := dunlin.RunT(t, dunlin.Frozen()), dunlin.RunT(t, dunlin.Frozen()), line{t}
	listener := other.NewSubscriber()
	listener.Subscribe("news")
	l.is(told(one.Publish("news", "hello"), other.Publish("news", "hello")), 0, 1)
	digest, err := one.Call("SCRIPT", "LOAD", "return 1")
	l.is(told(err), nil)
	known, err := one.Call("SCRIPT", "EXISTS", digest)
	unknown, failed := other.Call("SCRIPT", "EXISTS", digest)
	l.is(told(known, err, unknown, failed), []any{1}, nil, []any{0}, nil)
	moment := other.Now()
	one.Advance(24 * time.Hour)
	l.is(told(other.Now()), moment)
}

func TestWhatIsDoneToAServerIsDoneToOneWorldAlone(t *testing.T) {
	emptied, set, other, l := dunlin.RunT(t), dunlin.RunT(t), dunlin.RunT(t), line{t}
	ended, err := dunlin.Run() // a test whose own world has ended cannot be judged
	if err != nil {
		t.Fatal(err)
	}
	defer ended.Close()
	for _, each := range []*dunlin.World{emptied, set, ended, other} {
		l.is(told(each.Set("k", "v")), nil)
	}
	emptied.FlushAll()
	_, err = set.Call("CONFIG", "SET", "maxmemory", "10mb")
	l.is(told(err), nil)
	l.is(connect(t, ended.Addr()).call("SHUTDOWN NOSAVE"), "closed")
	l.is(told(emptied.Exists("k")), false)
	for _, each := range []*dunlin.World{set, other} {
		each.CheckGet(t, "k", "v")
	}
	limit, err := other.Call("CONFIG", "GET", "maxmemory")
	l.is(told(limit, err), []any{"maxmemory", "0"}, nil)
	pong, err := other.Server().Call("PING")
	l.is(told(pong, err), "PONG", nil)
}

func TestGoroutinesShareAWorld(t *testing.T) {
	s := dunlin.RunT(t)
	var all sync.WaitGroup
	for database := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 50 {
				if _, err := s.DB(database).Incr("k", 1); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	for database := range 10 {
		line{t}.is(told(s.DB(database).Get("k")), "50", nil)
	}
}

func TestADatabaseThatIsNotThereChangesNoOther(t *testing.T) {
	s := dunlin.RunT(t)
	if err := s.DB(99).Set("k", "v"); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("it is refused with %v", err)
	}
	line{t}.is(s.Dump(), "")
}

func TestAClientComesIntoAWorldByItsURLToo(t *testing.T) {
	s, l := dunlin.RunT(t), line{t}
	if !strings.HasPrefix(s.URL(), "redis://temporary-world."+s.Name()+":any@127.0.0.1:") {
		t.Error(s.URL())
	}
	c := connect(t, s.Server().Addr())
	c.call("AUTH temporary-world." + s.Name() + " any")
	l.is(c.call("DUNLIN WORLD"), s.Name())
}

func TestAServerOfItsOwnHasItsOwnSettings(t *testing.T) {
	server, err := dunlin.Start("--maxmemory", "10mb", "--requirepass", "secret/@")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l := line{t}
	l.is(told(server.Call("CONFIG", "GET", "maxmemory")), []any{"maxmemory", "10485760"}, nil)
	l.is(connect(t, server.Addr()).call("AUTH secret/@"), "+OK")
	w, err := server.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	l.is(told(w.Set("k", "v"), server.Exists("k")), nil, false)
	if !strings.Contains(w.URL(), ":secret%2F%40@") {
		t.Error(w.URL())
	}
	w.Close()
	w.Close()
	server.Close() // its log is whole only then
	if !strings.Contains(server.Log(), "Ready to accept connections") {
		t.Error(server.Log())
	}
}

func TestAServerCanBeACluster(t *testing.T) {
	server, err := dunlin.Start("--cluster", "3")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l, moved := line{t}, "-MOVED 12182 127.0.0.1:"
	if said := connect(t, server.Addr()).call("SET foo v"); !strings.HasPrefix(said, moved) {
		t.Error(said)
	} else {
		l.is(connect(t, strings.TrimPrefix(said, "-MOVED 12182 ")).call("SET foo v"), "+OK")
	}
}

func TestAWorldOfAClusterIsReachedByItsURLAlone(t *testing.T) {
	for _, nodes := range []string{"1", "3"} {
		server, err := dunlin.Start("--cluster", nodes)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		t.Setenv("DUNLIN_URL", server.URL())
		world, err := server.NewWorld()
		if err != nil {
			t.Fatal(err)
		}
		defer world.Close()
		place, _ := strings.CutPrefix(world.URL(), "redis://temporary-world."+world.Name()+":any@")
		c, l := connect(t, place), line{t}
		l.is(c.call("AUTH temporary-world."+world.Name()+" any"), "+OK")
		if said := c.call("SET bar v"); said != "+OK" && !strings.HasPrefix(said, "-MOVED 5061 127.0.0.1:") {
			t.Error(said)
		}
		expected := "dunlin: a world of a cluster has no port of its own: give the client its URL(), whose user name "
		func() {
			defer func() { begins(t, told(recover()), expected) }()
			world.Addr()
		}()
		begins(t, told(world.StartAddr("127.0.0.1:0")), "dunlin: it runs already")
		world.Close()
		begins(t, told(world.StartAddr("127.0.0.1:0")), expected)
	}
}

// tester is a test that has failed, or fails for what strict mode has found.
type tester struct {
	recorder
	failed   bool
	fatal    string
	logged   string
	cleanups []func()
}

func (r *tester) Failed() bool           { return r.failed || len(r.errors) > 0 }
func (r *tester) Cleanup(cleanup func()) { r.cleanups = append(r.cleanups, cleanup) }
func (r *tester) Logf(format string, arguments ...any) {
	r.logged += told(arguments...)
}
func (r *tester) Fatalf(format string, arguments ...any) {
	r.fatal += told(arguments...)
}

// run is a test of its own.
func run(t *testing.T, test func(*dunlin.World), options ...dunlin.Option) *tester {
	t.Helper()
	r := &tester{}
	test(dunlin.RunT(r, options...))
	for _, cleanup := range r.cleanups {
		cleanup()
	}
	return r
}

func TestATestThatFailedShowsItsLastCommandsAndItsSeed(t *testing.T) {
	failing := func(r *tester) func(*dunlin.World) {
		return func(s *dunlin.World) {
			for range 30 {
				s.Incr("k", 1)
			}
			s.Set("k", "two words")
		}
	}
	r := &tester{failed: true}
	s := dunlin.RunT(r, dunlin.Seeded(4711))
	failing(r)(s)
	r.cleanups[0]()
	for _, expected := range []string{"DUNLIN_SEED=4711 repeats it", "the last 20 of 31 commands", "31 client 1: SET k \"two words\" GET -> \"30\""} {
		if !strings.Contains(r.logged, expected) {
			t.Errorf("%q is not in %s", expected, r.logged)
		}
	}
	passed := run(t, failing(nil))
	line{t}.is(passed.logged+passed.fatal, "")
}

func TestStrictModeFailsTheTest(t *testing.T) {
	r := run(t, func(s *dunlin.World) { s.SAdd("seen", "a") }, dunlin.Strict("error"))
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "unbounded-collection") || !strings.Contains(r.logged, "SADD seen a") {
		t.Errorf("told are %q and %s", r.errors, r.logged)
	}
	r = run(t, func(s *dunlin.World) {
		s.SAdd("seen", "a")
		s.StrictAllow("ALL", "seen")
		s.StrictLimit("keys-command", "error", 5)
		s.Strict("endless-waits", "off")
		line{t}.is(told(len(s.Findings())), 0)
	}, dunlin.Strict("error"))
	line{t}.is(told(r.errors), []string(nil))
	r = run(t, func(s *dunlin.World) { s.SAdd("seen", "a"); line{t}.is(s.Findings()[0].Rule, "unbounded-collection") }, dunlin.Strict("warn"))
	line{t}.is(told(r.errors), []string(nil))
}

func TestACommandThatIsRefusedFailsTheTest(t *testing.T) {
	r := run(t, func(s *dunlin.World) { s.Set("k", "v"); s.HSet("k", "f", "v") })
	line{t}.is(r.fatal, dunlin.ErrWrongType)
	r = run(t, func(s *dunlin.World) { s.Close(); s.FlushAll() })
	line{t}.is(r.fatal, "dunlin: the world is closed")
}
