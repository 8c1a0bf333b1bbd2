// Package shop is a shop whose orders are worked on by asynq. It finds Redis by the variable REDIS_URL.
package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// ErrSoldOut says that the stock has fewer pieces than an order.
var ErrSoldOut = errors.New("sold out")

var errBank = errors.New("the bank does not answer")

// Order is some pieces of a product for a user.
type Order struct {
	User, Product string
	Count         int
}

// take takes pieces out of the stock, all of them or none.
var take = redis.NewScript(`
	local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
	if left < tonumber(ARGV[2]) then return 0 end
	redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2])
	return 1`)

// Shop places orders, and works on them.
type Shop struct {
	Data    redis.UniversalClient
	Tasks   *asynq.Client
	Queues  *asynq.Inspector
	address asynq.RedisConnOpt
}

// Open opens the shop.
func Open() (*Shop, error) {
	address, err := asynq.ParseRedisURI(os.Getenv("REDIS_URL"))
	if err != nil {
		return nil, err
	}
	data := address.MakeRedisClient().(redis.UniversalClient)
	return &Shop{data, asynq.NewClient(address), asynq.NewInspector(address), address}, nil
}

// Close closes its connections.
func (s *Shop) Close() error {
	return errors.Join(s.Tasks.Close(), s.Queues.Close(), s.Data.Close())
}

// Place places an order; the same one within a minute is a key that was pressed twice.
func (s *Shop) Place(order Order) (*asynq.TaskInfo, error) {
	payload, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	return s.Tasks.Enqueue(asynq.NewTask("order", payload), asynq.Unique(time.Minute), asynq.Retention(time.Hour))
}

// Work starts a worker. A bank that does not answer is asked again at once.
func (s *Shop) Work() (*asynq.Server, error) {
	server := asynq.NewServer(s.address, asynq.Config{
		Concurrency:              4,
		Queues:                   map[string]int{"default": 1, "urgent": 5},
		LogLevel:                 asynq.FatalLevel,
		TaskCheckInterval:        100 * time.Millisecond,
		DelayedTaskCheckInterval: 100 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
	})
	handlers := asynq.NewServeMux()
	handlers.HandleFunc("order", s.sell)
	return server, server.Start(handlers)
}

func (s *Shop) sell(ctx context.Context, task *asynq.Task) error {
	var order Order
	if err := json.Unmarshal(task.Payload(), &order); err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	// The line to the bank breaks at the first call of each user.
	if first, err := s.Data.SAdd(ctx, "bank:known", order.User).Result(); err != nil {
		return err
	} else if first == 1 {
		return errBank
	}
	taken, err := take.Run(ctx, s.Data, []string{"stock"}, order.Product, order.Count).Int()
	if err != nil {
		return err
	}
	if taken == 0 {
		return fmt.Errorf("%w: %w", ErrSoldOut, asynq.SkipRetry)
	}
	if err := s.Data.HIncrBy(ctx, "charged", order.User, int64(3*order.Count)).Err(); err != nil {
		return err
	}
	_, err = task.ResultWriter().Write([]byte(fmt.Sprintf("%d for %s", order.Count, order.User)))
	return err
}
