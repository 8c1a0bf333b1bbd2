package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

// Reads a key of a cluster for each line of the input.
func findingAKey(port string, protocol int) {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:" + port}, Protocol: protocol})
	defer client.Close()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		value, err := client.Get(ctx, os.Args[4]).Result()
		check(err)
		fmt.Println(value)
	}
}
