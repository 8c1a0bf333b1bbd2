package main

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

const counters = 20

// A Go backend on a cluster while slots move.
func onACluster(port string, protocol int) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}, Protocol: protocol})
	defer client.Close()
	countersLoseNothing(client)
	whatBelongsTogetherHasOneTag(client)
	everyNodeHearsWhatIsPublished(client)
	fmt.Println("go-redis is content")
}

func countersLoseNothing(client *redis.ClusterClient) {
	for range rounds {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for number := range counters {
				pipe.Incr(ctx, fmt.Sprint("counter:", number))
			}
			return nil
		})
		check(err)
	}
	for number := range counters {
		count, err := client.Get(ctx, fmt.Sprint("counter:", number)).Int()
		check(err)
		expect("count", count, rounds)
	}
}

func whatBelongsTogetherHasOneTag(client *redis.ClusterClient) {
	keys := []string{"{cart:7}:apples", "{cart:7}:pears"}
	_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Set(ctx, keys[0], 1, 0)
		pipe.Set(ctx, keys[1], 2, 0)
		return nil
	})
	check(err)
	take := redis.NewScript("return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}")
	counts, err := take.Run(ctx, client, keys).Int64Slice()
	check(err)
	expect("counts", counts, []int64{0, 3})
}

func everyNodeHearsWhatIsPublished(client *redis.ClusterClient) {
	listener := client.Subscribe(ctx, "news")
	defer listener.Close()
	_, err := listener.Receive(ctx)
	check(err)
	check(client.Publish(ctx, "news", "hello").Err())
	message, err := listener.ReceiveMessage(ctx)
	check(err)
	expect("message", message.Payload, "hello")
}
