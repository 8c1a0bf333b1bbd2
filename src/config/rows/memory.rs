//! Parameters of memory: limits, when memory is freed, and the encodings of small values.

use super::{INT, LONG, LONG_BYTES};
use crate::config::parameter::{Backing, Parameter};
use crate::config::words;
use crate::engine::Policy;

pub(super) const ROWS: &[Parameter] = &[
    Parameter::number("active-defrag-cycle-max", 1, 99, Backing::NoEffect("25")),
    Parameter::number("active-defrag-cycle-min", 1, 99, Backing::NoEffect("1")),
    Parameter::memory("active-defrag-ignore-bytes", 1, LONG_BYTES, Backing::NoEffect("104857600")),
    Parameter::number("active-defrag-max-scan-fields", 1, LONG, Backing::NoEffect("1000")),
    Parameter::number("active-defrag-threshold-lower", 0, 1000, Backing::NoEffect("10")),
    Parameter::number("active-defrag-threshold-upper", 0, 1000, Backing::NoEffect("100")),
    Parameter::number("active-expire-effort", 1, 10, Backing::NoEffect("1")),
    Parameter::switch("activedefrag", Backing::Fixed("no")).refusing(
        "Active defragmentation cannot be enabled: it requires a Redis server compiled with a modified Jemalloc like \
         the one shipped by default with the Redis source distribution",
    ),
    Parameter::switch(
        "lazyfree-lazy-eviction",
        Backing::Field(|s| s.lazy_free.evicted, |s, on| s.lazy_free.evicted = on),
    ),
    Parameter::switch(
        "lazyfree-lazy-expire",
        Backing::Field(|s| s.lazy_free.expired, |s, on| s.lazy_free.expired = on),
    ),
    Parameter::switch(
        "lazyfree-lazy-server-del",
        Backing::Field(|s| s.lazy_free.replaced, |s, on| s.lazy_free.replaced = on),
    ),
    Parameter::switch("lazyfree-lazy-user-del", Backing::NoEffect("no")),
    Parameter::switch("lazyfree-lazy-user-flush", Backing::NoEffect("no")),
    Parameter::number(
        "lfu-decay-time",
        0,
        INT,
        Backing::Field(|s| s.lfu.decay_minutes.into(), |s, minutes| s.lfu.decay_minutes = minutes as u32),
    ),
    Parameter::number(
        "lfu-log-factor",
        0,
        INT,
        Backing::Field(|s| s.lfu.log_factor.into(), |s, factor| s.lfu.log_factor = factor as u32),
    ),
    Parameter::memory(
        "maxmemory",
        0,
        u64::MAX,
        Backing::Field(|s| s.max_memory_bytes, |s, bytes| s.max_memory_bytes = bytes),
    ),
    Parameter::share("maxmemory-clients", Backing::Field(words::shown_clients_limit, words::assign_clients_limit)),
    Parameter::number(
        "maxmemory-eviction-tenacity",
        0,
        100,
        Backing::Field(|s| s.eviction.tenacity.into(), |s, tenacity| s.eviction.tenacity = tenacity as u8),
    ),
    Parameter::choice(
        "maxmemory-policy",
        &Policy::NAMES,
        Backing::Field(|s| s.policy.name(), |s, name| s.policy = Policy::named(name)),
    ),
    Parameter::number(
        "maxmemory-samples",
        1,
        64,
        Backing::Field(|s| s.eviction.samples.into(), |s, samples| s.eviction.samples = samples as u8),
    ),
    Parameter::switch("activerehashing", Backing::NoEffect("yes")),
    Parameter::number(
        "hash-max-listpack-entries",
        0,
        LONG,
        Backing::Field(|s| s.packed_hash.entries as i64, |s, count| s.packed_hash.entries = count as usize),
    )
    .alias("hash-max-ziplist-entries"),
    Parameter::memory(
        "hash-max-listpack-value",
        0,
        LONG_BYTES,
        Backing::Field(|s| s.packed_hash.bytes as u64, |s, bytes| s.packed_hash.bytes = bytes as usize),
    )
    .alias("hash-max-ziplist-value"),
    Parameter::memory(
        "hll-sparse-max-bytes",
        0,
        LONG_BYTES,
        Backing::Field(|s| s.sparse_hll_bytes as u64, |s, bytes| s.sparse_hll_bytes = bytes as usize),
    ),
    Parameter::number("list-compress-depth", 0, INT, Backing::NoEffect("0")),
    Parameter::number(
        "list-max-listpack-size",
        -INT - 1,
        INT,
        Backing::Field(|s| s.list_nodes.size, |s, size| s.list_nodes.size = size),
    )
    .alias("list-max-ziplist-size"),
    Parameter::number(
        "set-max-intset-entries",
        0,
        LONG,
        Backing::Field(|s| s.packed_set.integers as i64, |s, count| s.packed_set.integers = count as usize),
    ),
    Parameter::number(
        "set-max-listpack-entries",
        0,
        LONG,
        Backing::Field(|s| s.packed_set.entries as i64, |s, count| s.packed_set.entries = count as usize),
    ),
    Parameter::number(
        "set-max-listpack-value",
        0,
        LONG,
        Backing::Field(|s| s.packed_set.bytes as i64, |s, bytes| s.packed_set.bytes = bytes as usize),
    ),
    Parameter::memory(
        "stream-node-max-bytes",
        0,
        LONG_BYTES,
        Backing::Field(|s| s.stream_blocks.bytes as u64, |s, bytes| s.stream_blocks.bytes = bytes as usize),
    ),
    Parameter::number(
        "stream-node-max-entries",
        0,
        LONG,
        Backing::Field(|s| s.stream_blocks.entries as i64, |s, count| s.stream_blocks.entries = count as usize),
    ),
    Parameter::number(
        "zset-max-listpack-entries",
        0,
        LONG,
        Backing::Field(|s| s.packed_zset.entries as i64, |s, count| s.packed_zset.entries = count as usize),
    )
    .alias("zset-max-ziplist-entries"),
    Parameter::memory(
        "zset-max-listpack-value",
        0,
        LONG_BYTES,
        Backing::Field(|s| s.packed_zset.bytes as u64, |s, bytes| s.packed_zset.bytes = bytes as usize),
    )
    .alias("zset-max-ziplist-value"),
];
