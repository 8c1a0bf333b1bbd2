// The shop's own tests, with a worker in their process: `dunlin run -- go test ./...`.
package shop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
)

var ctx = context.Background()

// open opens a shop with ten apples and no orders; its tests run one by one.
func open(t *testing.T) *Shop {
	t.Helper()
	shop, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shop.Close() })
	if err := errors.Join(shop.Data.FlushDB(ctx).Err(), shop.Data.HSet(ctx, "stock", "apple", 10).Err()); err != nil {
		t.Fatal(err)
	}
	return shop
}

func work(t *testing.T, shop *Shop) {
	t.Helper()
	server, err := shop.Work()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
}

func place(t *testing.T, shop *Shop, order Order) *asynq.TaskInfo {
	t.Helper()
	task, err := shop.Place(order)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// finish waits until a task is not tried again.
func finish(t *testing.T, shop *Shop, task *asynq.TaskInfo) *asynq.TaskInfo {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		info, err := shop.Queues.GetTaskInfo(task.Queue, task.ID)
		if err != nil {
			t.Fatal(err)
		}
		if info.State == asynq.TaskStateCompleted || info.State == asynq.TaskStateArchived {
			return info
		}
	}
	t.Fatalf("the task %s has no end", task.ID)
	return nil
}

func TestAnOrderIsSoldOnceAlthoughTheBankFailsAtFirst(t *testing.T) {
	shop := open(t)
	work(t, shop)
	done := finish(t, shop, place(t, shop, Order{"ann", "apple", 2}))
	if string(done.Result) != "2 for ann" || done.Retried != 1 {
		t.Errorf("%q after %d more attempts", done.Result, done.Retried)
	}
	left, charged := shop.Data.HGet(ctx, "stock", "apple").Val(), shop.Data.HGetAll(ctx, "charged").Val()
	if left != "8" || fmt.Sprint(charged) != "map[ann:6]" {
		t.Errorf("%s are left, charged was %v", left, charged)
	}
}

func TestWhatIsSoldOutIsNotTriedAgain(t *testing.T) {
	shop := open(t)
	work(t, shop)
	failed := finish(t, shop, place(t, shop, Order{"ann", "apple", 11}))
	if failed.State != asynq.TaskStateArchived || failed.LastErr != "sold out: skip retry for the task" {
		t.Errorf("it is %s after %q", failed.State, failed.LastErr)
	}
}

func TestNoPieceIsSoldTwice(t *testing.T) {
	shop := open(t)
	work(t, shop)
	var tasks []*asynq.TaskInfo
	for number := range 15 {
		tasks = append(tasks, place(t, shop, Order{fmt.Sprint("user", number), "apple", 1}))
	}
	states := map[asynq.TaskState]int{}
	for _, task := range tasks {
		states[finish(t, shop, task).State]++
	}
	if states[asynq.TaskStateCompleted] != 10 || states[asynq.TaskStateArchived] != 5 {
		t.Errorf("so many ended so: %v", states)
	}
}

func TestAnOrderIsPlacedOnceInAMinute(t *testing.T) {
	shop := open(t)
	order := Order{"ann", "apple", 1}
	first := place(t, shop, order)
	if _, err := shop.Place(order); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("it was placed: %v", err)
	}
	if err := shop.Data.Do(ctx, "DUNLIN", "ADVANCE", 60_000).Err(); err != nil {
		t.Fatal(err)
	}
	if second := place(t, shop, order); second.ID == first.ID {
		t.Error("it is the first one")
	}
}
