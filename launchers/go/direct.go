package dunlin

// The direct methods of miniredis: a command each, from a connection of the launcher.

import (
	"errors"
	"sort"
	"strconv"
	"time"
)

// The errors of the direct methods. Any other one is a CommandError, too, with the server's text.
var (
	ErrKeyNotFound           error = CommandError("ERR no such key")
	ErrWrongType             error = CommandError("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrNotValidHllValue      error = CommandError("WRONGTYPE Key is not a valid HyperLogLog string value.")
	ErrIntValueError         error = CommandError("ERR value is not an integer or out of range")
	ErrIntValueOverflowError error = CommandError("ERR increment or decrement would overflow")
	ErrFloatValueError       error = CommandError("ERR value is not a valid float")

	errClosed = errors.New("dunlin: the world is closed")
)

// RedisDB is one database of a world.
type RedisDB struct {
	world  *World
	number int
}

func (d *RedisDB) call(words ...any) (any, error) { return d.within(patience, words) }

func (d *RedisDB) within(timeout time.Duration, words []any) (any, error) {
	p := d.world.live()
	if p == nil {
		return nil, errClosed
	}
	replies, err := p.call(d.number, timeout, words)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// must runs a command of a method that returns no error: a refusal fails the test.
func (d *RedisDB) must(words ...any) any {
	reply, err := d.call(words...)
	if err != nil {
		d.world.fail(err)
	}
	return reply
}

func text(reply any) string {
	value, _ := reply.(string)
	return value
}

func number(reply any) int {
	value, _ := reply.(int)
	return value
}

func texts(reply any) []string {
	items, _ := reply.([]any)
	values := make([]string, len(items))
	for place, item := range items {
		values[place] = text(item)
	}
	return values
}

// maps is a reply of maps, which RESP2 writes as flat lists.
func maps(reply any) []map[string]any {
	items, _ := reply.([]any)
	found := make([]map[string]any, len(items))
	for place, item := range items {
		fields, _ := item.([]any)
		found[place] = map[string]any{}
		for field := 0; field+1 < len(fields); field += 2 {
			found[place][text(fields[field])] = fields[field+1]
		}
	}
	return found
}

func sorted(values []string) []string {
	sort.Strings(values)
	return values
}

// words is a command whose last words are a list.
func words(first ...any) []any {
	last := len(first) - 1
	all := first[:last:last]
	for _, each := range first[last].([]string) {
		all = append(all, each)
	}
	return all
}

func asInt(reply any, err error) (int, error)   { return number(reply), err }
func asBool(reply any, err error) (bool, error) { return number(reply) == 1, err }

// asText takes nothing for a key that is not there.
func asText(reply any, err error) (string, error) {
	if reply == nil && err == nil {
		err = ErrKeyNotFound
	}
	return text(reply), err
}

// asTexts takes an empty collection for a key that is not there.
func asTexts(reply any, err error) ([]string, error) {
	values := texts(reply)
	if len(values) == 0 {
		if err == nil {
			err = ErrKeyNotFound
		}
		return nil, err
	}
	return values, err
}

func asFloat(reply any, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text(reply), 64)
}

// present refuses a key that is not there.
func (d *RedisDB) present(key string) error {
	if found, err := d.call("EXISTS", key); err != nil || found == 0 {
		return errors.Join(err, ErrKeyNotFound)
	}
	return nil
}

// Keys are the names of all keys, sorted.
func (d *RedisDB) Keys() []string       { return sorted(texts(d.must("KEYS", "*"))) }
func (d *RedisDB) FlushDB()             { d.must("FLUSHDB") }
func (d *RedisDB) Exists(k string) bool { return d.must("EXISTS", k) == 1 }
func (d *RedisDB) Del(k string) bool    { return d.must("DEL", k) == 1 }
func (d *RedisDB) Unlink(k string) bool { return d.must("UNLINK", k) == 1 }

// Type is empty for a key that is not there.
func (d *RedisDB) Type(k string) string {
	if kind := text(d.must("TYPE", k)); kind != "none" {
		return kind
	}
	return ""
}

// SetTTL sets how long a key has to live; 0 is for ever.
func (d *RedisDB) SetTTL(k string, ttl time.Duration) {
	if ttl <= 0 {
		d.must("PERSIST", k)
		return
	}
	d.must("PEXPIRE", k, milliseconds(ttl))
}

func milliseconds(duration time.Duration) int64 { return max(1, duration.Milliseconds()) }

// Set refuses a key of another type.
func (d *RedisDB) Set(k, v string) error {
	_, err := d.call("SET", k, v, "GET")
	return err
}

func (d *RedisDB) Get(k string) (string, error)          { return asText(d.call("GET", k)) }
func (d *RedisDB) Incr(k string, delta int) (int, error) { return asInt(d.call("INCRBY", k, delta)) }
func (d *RedisDB) Incrfloat(k string, delta float64) (float64, error) {
	return asFloat(d.call("INCRBYFLOAT", k, delta))
}
func (d *RedisDB) IncrByFloat(k string, delta float64) (float64, error) { return d.Incrfloat(k, delta) }

func (d *RedisDB) List(k string) ([]string, error) { return asTexts(d.call("LRANGE", k, 0, -1)) }
func (d *RedisDB) Lpush(k, v string) (int, error)  { return asInt(d.call("LPUSH", k, v)) }
func (d *RedisDB) Push(k string, v ...string) (int, error) {
	return asInt(d.call(words("RPUSH", k, v)...))
}
func (d *RedisDB) RPush(k string, v ...string) (int, error) { return d.Push(k, v...) }
func (d *RedisDB) Lpop(k string) (string, error)            { return asText(d.call("LPOP", k)) }
func (d *RedisDB) Pop(k string) (string, error)             { return asText(d.call("RPOP", k)) }
func (d *RedisDB) RPop(k string) (string, error)            { return d.Pop(k) }

func (d *RedisDB) SetAdd(k string, elems ...string) (int, error) {
	return asInt(d.call(words("SADD", k, elems)...))
}
func (d *RedisDB) SAdd(k string, elems ...string) (int, error) { return d.SetAdd(k, elems...) }
func (d *RedisDB) SCard(k string) (int, error)                 { return asInt(d.call("SCARD", k)) }

// Members are sorted.
func (d *RedisDB) Members(k string) ([]string, error) {
	values, err := asTexts(d.call("SMEMBERS", k))
	return sorted(values), err
}
func (d *RedisDB) SMembers(k string) ([]string, error) { return d.Members(k) }

func (d *RedisDB) IsMember(k, v string) (bool, error) {
	is, err := asBool(d.call("SISMEMBER", k, v))
	if err == nil && !is {
		err = d.present(k)
	}
	return is, err
}
func (d *RedisDB) SIsMember(k, v string) (bool, error) { return d.IsMember(k, v) }

func (d *RedisDB) SRem(k string, fields ...string) (int, error) {
	if err := d.present(k); err != nil {
		return 0, err
	}
	return asInt(d.call(words("SREM", k, fields)...))
}

// SRandMember is empty for a set that is not there.
func (d *RedisDB) SRandMember(k string) (string, error) {
	reply, err := d.call("SRANDMEMBER", k)
	return text(reply), err
}

// HGet is empty for a field that is not there.
func (d *RedisDB) HGet(k, f string) string     { return text(d.must("HGET", k, f)) }
func (d *RedisDB) HSet(k string, fv ...string) { d.must(words("HSET", k, fv)...) }
func (d *RedisDB) HDel(k, f string)            { d.must("HDEL", k, f) }
func (d *RedisDB) HIncr(k, f string, delta int) (int, error) {
	return asInt(d.call("HINCRBY", k, f, delta))
}
func (d *RedisDB) HIncrBy(k, f string, delta int) (int, error) { return d.HIncr(k, f, delta) }
func (d *RedisDB) HIncrfloat(k, f string, delta float64) (float64, error) {
	return asFloat(d.call("HINCRBYFLOAT", k, f, delta))
}
func (d *RedisDB) HIncrByFloat(k, f string, delta float64) (float64, error) {
	return d.HIncrfloat(k, f, delta)
}

// HKeys are sorted.
func (d *RedisDB) HKeys(k string) ([]string, error) {
	values, err := asTexts(d.call("HKEYS", k))
	return sorted(values), err
}

// field is the reply of a command about one field: 1 is that it was done.
func (d *RedisDB) field(words ...any) any {
	if items, _ := d.must(words...).([]any); len(items) == 1 {
		return items[0]
	}
	return nil
}

func (d *RedisDB) HExpire(k, f string, ttl time.Duration) bool {
	return d.field("HPEXPIRE", k, milliseconds(ttl), "FIELDS", 1, f) == 1
}
func (d *RedisDB) HPersist(k, f string) bool { return d.field("HPERSIST", k, "FIELDS", 1, f) == 1 }
func (d *RedisDB) HTTL(k, f string) time.Duration {
	return lifetime(d.field("HPTTL", k, "FIELDS", 1, f))
}
func (d *RedisDB) HSetEX(k string, ttl time.Duration, fv ...string) {
	d.must(words("HSETEX", k, "PX", milliseconds(ttl), "FIELDS", len(fv)/2, fv)...)
}

func (d *RedisDB) ZAdd(k string, score float64, member string) (bool, error) {
	return asBool(d.call("ZADD", k, score, member))
}

// ZMembers are in the order of their scores.
func (d *RedisDB) ZMembers(k string) ([]string, error) { return asTexts(d.call("ZRANGE", k, 0, -1)) }

// SortedSet are the members with their scores.
func (d *RedisDB) SortedSet(k string) (map[string]float64, error) {
	flat, err := asTexts(d.call("ZRANGE", k, 0, -1, "WITHSCORES"))
	if err != nil {
		return nil, err
	}
	scores := map[string]float64{}
	for place := 0; place+1 < len(flat); place += 2 {
		if scores[flat[place]], err = strconv.ParseFloat(flat[place+1], 64); err != nil {
			return nil, err
		}
	}
	return scores, nil
}

func (d *RedisDB) ZRem(k, member string) (bool, error) {
	removed, err := asBool(d.call("ZREM", k, member))
	if err == nil && !removed {
		err = d.present(k)
	}
	return removed, err
}

// ZScore is 0 for a member that is not there.
func (d *RedisDB) ZScore(k, member string) (float64, error) {
	scores, err := d.scores(k, member)
	if err != nil {
		return 0, err
	}
	return scores[0], nil
}

// ZMScore takes the members one by one of a world, and as a list of a database, as in miniredis.
func (w *World) ZMScore(k string, members ...string) ([]float64, error) {
	return w.RedisDB.ZMScore(k, members)
}

func (d *RedisDB) ZMScore(k string, members []string) ([]float64, error) {
	return d.scores(k, members...)
}

func (d *RedisDB) scores(k string, members ...string) ([]float64, error) {
	reply, err := d.call(words("ZMSCORE", k, members)...)
	if err == nil {
		err = d.present(k)
	}
	if err != nil {
		return nil, err
	}
	scores := make([]float64, len(members))
	for place, score := range texts(reply) {
		if score != "" {
			if scores[place], err = strconv.ParseFloat(score, 64); err != nil {
				return nil, err
			}
		}
	}
	return scores, nil
}

// XAdd takes "*" for an ID that the server makes.
func (d *RedisDB) XAdd(k, id string, values []string) (string, error) {
	reply, err := d.call(words("XADD", k, id, values)...)
	return text(reply), err
}

// StreamEntry is an entry of a stream: its ID, and its fields and values in turn.
type StreamEntry struct {
	ID     string
	Values []string
}

// Stream are the entries of a stream.
func (d *RedisDB) Stream(k string) ([]StreamEntry, error) {
	reply, err := d.call("XRANGE", k, "-", "+")
	if err != nil {
		return nil, err
	}
	var entries []StreamEntry
	items, _ := reply.([]any)
	for _, item := range items {
		if pair, _ := item.([]any); len(pair) == 2 {
			entries = append(entries, StreamEntry{text(pair[0]), texts(pair[1])})
		}
	}
	return entries, nil
}

func (d *RedisDB) HllAdd(k string, elems ...string) (int, error) {
	return asInt(d.call(words("PFADD", k, elems)...))
}
func (d *RedisDB) PfAdd(k string, elems ...string) (int, error) { return d.HllAdd(k, elems...) }
func (d *RedisDB) HllCount(keys ...string) (int, error) {
	return asInt(d.call(words("PFCOUNT", keys)...))
}
func (d *RedisDB) PfCount(keys ...string) (int, error) { return d.HllCount(keys...) }
func (d *RedisDB) HllMerge(to string, from ...string) error {
	_, err := d.call(words("PFMERGE", to, from)...)
	return err
}
func (d *RedisDB) PfMerge(to string, from ...string) error { return d.HllMerge(to, from...) }
