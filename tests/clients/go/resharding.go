package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const pause = 2 * time.Millisecond // between two messages

// A worker does one thing again and again, with the numbers from 1 on.
type worker struct {
	kind           string
	keys           []string
	channel        string
	work           func(*worker, int) error
	sent, arrived  int
	unknown, heard []int
}

// A Go backend that goes on while its cluster changes. What it reads and prints is in resharding.rs.
type backend struct {
	client  *redis.ClusterClient
	workers []*worker
	lock    sync.Mutex
	changed *sync.Cond
	isDone  bool
}

func onAChangingCluster(port string, protocol int) {
	options := redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}, Protocol: protocol, PoolSize: 4}
	this := &backend{client: redis.NewClusterClient(&options)}
	this.changed = sync.NewCond(&this.lock)
	for number := range 2 {
		this.workers = append(this.workers, this.workersOf(number)...)
	}
	this.listen()
	var group sync.WaitGroup
	for _, one := range this.workers {
		group.Add(1)
		go func() {
			defer group.Done()
			this.run(one)
		}()
	}
	fmt.Println("ready")
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		this.goesOn(strings.Fields(input.Text()))
		fmt.Println("went on")
	}
	this.lock.Lock()
	this.isDone = true
	this.lock.Unlock()
	group.Wait()
	this.print()
}

func (this *backend) workersOf(number int) []*worker {
	tagged := func(name string) string { return fmt.Sprintf("{%d}:%s", number, name) }
	var piped []string
	for key := range 8 {
		piped = append(piped, fmt.Sprintf("piped:%d:%d", number, key))
	}
	return []*worker{
		{kind: "append", keys: []string{tagged("appended")}, work: this.append},
		{kind: "pipeline", keys: piped, work: this.pipeline},
		{kind: "transaction", keys: []string{tagged("left"), tagged("right")}, work: this.transaction},
		{kind: "watch", work: this.watch},
		{kind: "script", keys: []string{tagged("script:left"), tagged("script:right")}, work: this.script},
		{kind: "news", channel: fmt.Sprint("news:", number), work: this.publish},
		{kind: "events", channel: tagged("events"), work: this.publishSharded},
	}
}

func (this *backend) append(one *worker, value int) error {
	return this.client.RPush(ctx, one.keys[0], value).Err()
}

func (this *backend) pushed(one *worker, value int) func(redis.Pipeliner) error {
	return func(pipe redis.Pipeliner) error {
		for _, key := range one.keys {
			pipe.RPush(ctx, key, value)
		}
		return nil
	}
}

func (this *backend) pipeline(one *worker, value int) error {
	_, err := this.client.Pipelined(ctx, this.pushed(one, value))
	return err
}

// TxPipelined of the cluster's client would, after ASK for one of the commands, send this one again without the others.
func (this *backend) transaction(one *worker, value int) error {
	return this.watchAndRun(func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(ctx, this.pushed(one, value))
		return err
	}, one.keys...)
}

var errNotRun = errors.New("the transaction was not run")

// Watch of go-redis 9.7 returns no error when its last attempt was redirected, so the outcome of what it ran decides.
func (this *backend) watchAndRun(run func(*redis.Tx) error, keys ...string) error {
	outcome := errNotRun
	err := this.client.Watch(ctx, func(tx *redis.Tx) error {
		outcome = run(tx)
		return outcome
	}, keys...)
	if err == nil {
		return outcome
	}
	return err
}

func (this *backend) watch(*worker, int) error {
	addNext := func(tx *redis.Tx) error {
		length, err := tx.LLen(ctx, "{0}:watched").Result()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.RPush(ctx, "{0}:watched", length+1)
			return nil
		})
		return err
	}
	err := this.watchAndRun(addNext, "{0}:watched")
	for errors.Is(err, redis.TxFailedErr) {
		err = this.watchAndRun(addNext, "{0}:watched")
	}
	return err
}

var both = redis.NewScript("redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('RPUSH', KEYS[2], ARGV[1])")

func (this *backend) script(one *worker, value int) error {
	return both.Run(ctx, this.client, one.keys, value).Err()
}

func (this *backend) publish(one *worker, value int) error {
	time.Sleep(pause)
	return this.client.Publish(ctx, one.channel, value).Err()
}

func (this *backend) publishSharded(one *worker, value int) error {
	time.Sleep(pause)
	return this.client.SPublish(ctx, one.channel, value).Err()
}

func (this *backend) listen() {
	for _, one := range this.workers {
		switch one.kind {
		case "news":
			go this.hear(one, this.subscribed(one, this.client.Subscribe), this.client.Subscribe)
		case "events":
			go this.hear(one, this.subscribed(one, this.client.SSubscribe), this.client.SSubscribe)
		}
	}
}

type subscribe func(ctx context.Context, channels ...string) *redis.PubSub

func (this *backend) subscribed(one *worker, subscribe subscribe) *redis.PubSub {
	listener := subscribe(ctx, one.channel)
	_, err := listener.Receive(ctx)
	check(err)
	return listener
}

func (this *backend) hear(one *worker, listener *redis.PubSub, subscribe subscribe) {
	for {
		got, err := listener.Receive(ctx)
		if message, isOne := got.(*redis.Message); isOne {
			value, err := strconv.Atoi(message.Payload)
			check(err)
			this.hasArrived(one, value)
			continue
		}
		// go-redis leaves it to its callers to follow a slot.
		change, isOne := got.(*redis.Subscription)
		if err != nil || isOne && change.Kind == "sunsubscribe" {
			listener.Close()
			this.client.ReloadState(ctx)
			listener = subscribe(ctx, one.channel)
		}
	}
}

func (this *backend) hasArrived(one *worker, value int) {
	this.lock.Lock()
	defer this.lock.Unlock()
	one.heard = append(one.heard, value)
	one.arrived = value
	this.changed.Broadcast()
}

func (this *backend) run(one *worker) {
	this.lock.Lock()
	defer this.lock.Unlock()
	for !this.isDone {
		one.sent++
		this.lock.Unlock()
		err := one.work(one, one.sent)
		if err != nil {
			// go-redis itself asks where the slots are every ten seconds.
			this.client.ReloadState(ctx)
		}
		this.lock.Lock()
		if err != nil {
			one.unknown = append(one.unknown, one.sent)
		} else if one.channel == "" {
			one.arrived = one.sent
		}
		this.changed.Broadcast()
	}
}

// Waits until each worker of these kinds has done what it began from now on.
func (this *backend) goesOn(kinds []string) {
	this.lock.Lock()
	defer this.lock.Unlock()
	sent := map[*worker]int{}
	for _, one := range this.workers {
		if slices.Contains(kinds, one.kind) {
			sent[one] = one.sent
		}
	}
	this.waitUntil(func(one *worker) bool {
		last, isAwaited := sent[one]
		return !isAwaited || one.arrived > last
	})
}

func (this *backend) waitUntil(isSo func(*worker) bool) {
	for slices.ContainsFunc(this.workers, func(one *worker) bool { return !isSo(one) }) {
		this.changed.Wait()
	}
}

func (this *backend) print() {
	this.lock.Lock()
	defer this.lock.Unlock()
	tried, acknowledged := 0, 0
	for _, one := range this.workers {
		for _, key := range one.keys {
			fmt.Println("list", key, one.sent, printed(one.unknown))
		}
		if one.channel != "" {
			fmt.Println("channel", one.channel, one.sent, printed(one.unknown), printed(one.heard))
		}
		if one.kind == "watch" {
			tried += one.sent
			acknowledged += one.sent - len(one.unknown)
		}
	}
	fmt.Println("counter {0}:watched", tried, acknowledged)
}

func printed(values []int) string {
	if len(values) == 0 {
		return "-"
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(values), "[]"), " ", ",")
}
