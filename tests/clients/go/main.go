// The patterns of a Go backend with go-redis: `patterns PORT PROTOCOL [cluster|resharding|finding KEY]`.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	workers = 8
	rounds  = 50
)

var ctx = context.Background()

func main() {
	if len(os.Args) < 3 {
		fmt.Println("usage: patterns PORT PROTOCOL [cluster|resharding|finding KEY]")
		return
	}
	protocol, err := strconv.Atoi(os.Args[2])
	check(err)
	if len(os.Args) > 3 {
		modes := map[string]func(string, int){
			"cluster": onACluster, "resharding": onAChangingCluster, "finding": findingAKey,
		}
		modes[os.Args[3]](os.Args[1], protocol)
		return
	}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol, PoolSize: 4})
	defer client.Close()
	check(client.FlushAll(ctx).Err())
	moreWorkersThanConnectionsShareAPool(client)
	aPipelineKeepsAListOfWhatWasViewedLast(client)
	aTransactionThatWasOvertakenIsTriedAgain(client)
	aScriptIsSentOnceAndCalledByItsName(client)
	messagesReachWhoListensInOrder(client)
	workersTakeJobsAsTheyCome(client)
	aScanMeetsEverything(client)
	whatHasADeadlineEnds(client)
	fmt.Println("go-redis is content")
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}

func expect(what string, found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		log.Panicf("%s: %#v instead of %#v", what, found, expected)
	}
}

func inParallel(work func()) {
	var group sync.WaitGroup
	for range workers {
		group.Add(1)
		go func() {
			defer group.Done()
			work()
		}()
	}
	group.Wait()
}

func moreWorkersThanConnectionsShareAPool(client *redis.Client) {
	inParallel(func() {
		for range rounds {
			check(client.Incr(ctx, "visits").Err())
		}
	})
	visits, err := client.Get(ctx, "visits").Int()
	check(err)
	expect("visits", visits, workers*rounds)
}

func aPipelineKeepsAListOfWhatWasViewedLast(client *redis.Client) {
	for moment := range 35 {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.ZAdd(ctx, "rv:42", redis.Z{Score: float64(moment), Member: fmt.Sprint("page-", moment)})
			pipe.ZRemRangeByRank(ctx, "rv:42", 0, -31)
			pipe.Expire(ctx, "rv:42", time.Hour)
			return nil
		})
		check(err)
	}
	newest, err := client.ZRevRangeWithScores(ctx, "rv:42", 0, 1).Result()
	check(err)
	expect("newest", newest, []redis.Z{{Score: 34, Member: "page-34"}, {Score: 33, Member: "page-33"}})
	check(client.HSet(ctx, "person:1", "name", "ann", "age", 7).Err())
	person, err := client.HGetAll(ctx, "person:1").Result()
	check(err)
	expect("person", person, map[string]string{"name": "ann", "age": "7"})
	_, err = client.ZScore(ctx, "rv:42", "nobody").Result()
	expect("missing score", err, redis.Nil)
}

func aTransactionThatWasOvertakenIsTriedAgain(client *redis.Client) {
	check(client.Set(ctx, "stock", workers+3, 0).Err())
	sellOne := func(tx *redis.Tx) error {
		left, err := tx.Get(ctx, "stock").Int()
		if err != nil {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "stock", left-1, 0)
			return nil
		})
		return err
	}
	inParallel(func() {
		var err error = redis.TxFailedErr
		for errors.Is(err, redis.TxFailedErr) {
			err = client.Watch(ctx, sellOne, "stock")
		}
		check(err)
	})
	left, err := client.Get(ctx, "stock").Int()
	check(err)
	expect("stock", left, 3)
}

func aScriptIsSentOnceAndCalledByItsName(client *redis.Client) {
	check(client.ScriptFlush(ctx).Err())
	firstSeen := redis.NewScript(`
		local added = redis.call('SADD', KEYS[1], ARGV[1])
		redis.call('EXPIRE', KEYS[1], ARGV[2])
		return added`)
	for _, expected := range []int{1, 0, 0} {
		added, err := firstSeen.Run(ctx, client, []string{"dedupe"}, "event-1", 7200).Int()
		check(err)
		expect("added", added, expected)
	}
	check(client.Set(ctx, "word", "x", 0).Err())
	err := redis.NewScript("return redis.call('INCR', KEYS[1])").Run(ctx, client, []string{"word"}).Err()
	if err == nil || !strings.HasPrefix(err.Error(), "ERR value is not an integer or out of range script: ") {
		log.Panic(err)
	}
}

func messagesReachWhoListensInOrder(client *redis.Client) {
	listener := client.Subscribe(ctx, "news")
	defer listener.Close()
	check(listener.PSubscribe(ctx, "other*"))
	for range 2 {
		_, err := listener.Receive(ctx)
		check(err)
	}
	for number := range 50 {
		check(client.Publish(ctx, []string{"other", "news"}[number%2], number).Err())
	}
	messages := listener.Channel()
	for number := range 50 {
		expect("message", (<-messages).Payload, strconv.Itoa(number))
	}
}

func workersTakeJobsAsTheyCome(client *redis.Client) {
	done := make(chan []string)
	go func() {
		var jobs []string
		for {
			taken, err := client.BLPop(ctx, 5*time.Second, "urgent", "jobs").Result()
			check(err)
			if taken[1] == "stop" {
				done <- jobs
				return
			}
			jobs = append(jobs, taken[1])
		}
	}()
	var expected []string
	for number := range 50 {
		expected = append(expected, strconv.Itoa(number))
		check(client.RPush(ctx, "jobs", number).Err())
	}
	check(client.RPush(ctx, "jobs", "stop").Err())
	expect("jobs", <-done, expected)
	expect("nothing", client.BLPop(ctx, time.Second, "nothing").Err(), redis.Nil)
	check(client.ZAdd(ctx, "due", redis.Z{Score: 2, Member: "later"}, redis.Z{Score: 1, Member: "sooner"}).Err())
	first, err := client.BZPopMin(ctx, time.Second, "due").Result()
	check(err)
	expect("first", *first, redis.ZWithKey{Z: redis.Z{Score: 1, Member: "sooner"}, Key: "due"})
}

func aScanMeetsEverything(client *redis.Client) {
	for number := range 500 {
		check(client.Set(ctx, fmt.Sprint("user:", number), number, 0).Err())
	}
	met := map[string]bool{}
	keys := client.Scan(ctx, 0, "user:*", 50).Iterator()
	for keys.Next(ctx) {
		met[keys.Val()] = true
	}
	check(keys.Err())
	expect("keys met", len(met), 500)
}

func whatHasADeadlineEnds(client *redis.Client) {
	check(client.Set(ctx, "session", "ann", time.Hour).Err())
	check(client.Do(ctx, "DUNLIN", "ADVANCE", time.Hour.Milliseconds()).Err())
	expect("deadline", client.PTTL(ctx, "session").Val(), time.Duration(-2))
}
