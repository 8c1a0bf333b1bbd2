//! The fields of INFO, one row each, in the order of Redis.

use std::sync::atomic::Ordering;

use super::InfoContext;
use super::exposition::MetricType;
use super::value::Value;
use crate::acl::Reason;
use crate::commands::memory::{self, ratio};
use crate::engine::exec::{blocking, cluster_compatibility};
use crate::engine::state::host::{LoopCycles, ProcessorTimes};
use crate::engine::state::lru;
use crate::engine::{Counts, REDIS_VERSION, Saving, Topic, build_id};

/// One line of INFO.
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The value now.
    pub(super) value: for<'s> fn(&'s InfoContext<'s>) -> Value<'s>,
    /// Whether the line is shown at all.
    pub(super) is_shown: fn(&InfoContext<'_>) -> bool,
    /// The metric with this value, without the prefix `redis_`.
    pub(super) metric: Option<(MetricType, &'static str)>,
}

impl Field {
    /// Makes the value a metric that goes up and down.
    pub(super) const fn gauge(self, name: &'static str) -> Field {
        Field { metric: Some((MetricType::Gauge, name)), ..self }
    }

    /// Makes the value a metric that only grows.
    const fn counter(self, name: &'static str) -> Field {
        Field { metric: Some((MetricType::Counter, name)), ..self }
    }
}

pub(super) const fn field(name: &'static str, value: for<'s> fn(&'s InfoContext<'s>) -> Value<'s>) -> Field {
    Field { name, value, is_shown: |_| true, metric: None }
}

/// A counter of something that this server does not do.
const fn none(name: &'static str) -> Field {
    field(name, |_| Value::Count(0))
}

/// The links of a node of a cluster: one in each direction for each other node that it knows, as Redis counts them.
fn cluster_connections(context: &InfoContext<'_>) -> usize {
    context.engine.peers.cluster.as_ref().map_or(0, |view| 2 * (view.nodes().len() - 1))
}

pub(super) const SERVER: &[Field] = &[
    field("redis_version", |_| REDIS_VERSION.into()),
    field("dunlin_version", |_| env!("CARGO_PKG_VERSION").into()),
    field("redis_git_sha1", |_| "00000000".into()),
    field("redis_git_dirty", |_| "0".into()),
    field("redis_build_id", |_| build_id().into()),
    field("redis_mode", |context| if context.engine.peers.cluster.is_some() { "cluster" } else { "standalone" }.into()),
    field("os", |context| (&*context.facts.system).into()),
    field("arch_bits", |_| usize::BITS.into()),
    field("monotonic_clock", |_| "POSIX clock_gettime".into()),
    field("multiplexing_api", |_| if cfg!(target_os = "linux") { "epoll" } else { "kqueue" }.into()),
    field("atomicvar_api", |_| "core::sync::atomic".into()),
    field("gcc_version", |_| "0.0.0".into()),
    field("process_id", |context| context.facts.process_id.into()).gauge("process_id"),
    field("process_supervised", |context| context.facts.supervisor.name().into()),
    field("run_id", |context| context.facts.run_id.as_str().into()),
    field("tcp_port", |context| context.engine.settings.port.into()),
    field("server_time_usec", |context| context.now.unix_us.into()),
    field("uptime_in_seconds", |context| uptime_s(context).into()).gauge("uptime_in_seconds"),
    field("uptime_in_days", |context| (uptime_s(context) / 86_400).into()),
    field("hz", |context| context.engine.settings.hz.into()).gauge("hz"),
    field("configured_hz", |context| context.engine.settings.hz.into()).gauge("configured_hz"),
    field("lru_clock", |context| lru::clock(context.now).into()),
    field("executable", |context| (&*context.facts.executable).into()),
    field("config_file", |context| context.facts.config_file.as_str().into()),
    field("io_threads_active", |context| u8::from(context.engine.settings.event_loops() > 1).into())
        .gauge("io_threads_active"),
];

pub(super) const CLIENTS: &[Field] = &[
    field("connected_clients", |context| context.engine.sessions.clients().into()).gauge("connected_clients"),
    field("cluster_connections", |context| cluster_connections(context).into()).gauge("cluster_connections"),
    field("maxclients", |context| context.engine.settings.max_clients.into()).gauge("max_clients"),
    field("client_recent_max_input_buffer", |context| context.engine.sessions.largest_buffers().query.into())
        .gauge("client_recent_max_input_buffer_bytes"),
    field("client_recent_max_output_buffer", |context| context.engine.sessions.largest_buffers().output.into())
        .gauge("client_recent_max_output_buffer_bytes"),
    field("blocked_clients", |context| blocking::blocked_sessions(context.engine).into()).gauge("blocked_clients"),
    field("tracking_clients", |context| context.engine.observers.tracking.clients().into()).gauge("tracking_clients"),
    field("pubsub_clients", |context| context.engine.observers.subscriptions.subscribers.into())
        .gauge("pubsub_clients"),
    field("watching_clients", |context| context.engine.observers.watches.sessions().into()).gauge("watching_clients"),
    field("clients_in_timeout_table", |context| context.engine.observers.waiting.deadlines().into())
        .gauge("clients_in_timeout_table"),
    field("total_watched_keys", |context| context.engine.observers.watches.keys().into()).gauge("total_watched_keys"),
    field("total_blocking_keys", |context| context.engine.observers.waiting.keys().into()).gauge("total_blocking_keys"),
    field("total_blocking_keys_on_nokey", |context| context.engine.observers.waiting.keys_on_nokey().into())
        .gauge("total_blocking_keys_on_nokey"),
];

pub(super) const MEMORY: &[Field] = &[
    field("used_memory", |context| used_bytes(context).into()).gauge("memory_used_bytes"),
    field("used_memory_human", |context| Value::Human(used_bytes(context))),
    field("used_memory_rss", |context| context.usage.resident_bytes.into()).gauge("memory_used_rss_bytes"),
    field("used_memory_rss_human", |context| Value::Human(context.usage.resident_bytes)),
    field("used_memory_peak", |context| peak_bytes(context).into()).gauge("memory_used_peak_bytes"),
    field("used_memory_peak_human", |context| Value::Human(peak_bytes(context))),
    field("used_memory_peak_perc", |context| Value::Percent(ratio(used_bytes(context), peak_bytes(context)) * 100.0)),
    field("used_memory_overhead", |context| used_bytes(context).saturating_sub(data_bytes(context)).into())
        .gauge("memory_used_overhead_bytes"),
    field("used_memory_startup", |context| context.engine.stats.startup_bytes.into())
        .gauge("memory_used_startup_bytes"),
    field("used_memory_dataset", |context| data_bytes(context).into()).gauge("memory_used_dataset_bytes"),
    field("used_memory_dataset_perc", |context| {
        let beyond_start = used_bytes(context).saturating_sub(context.engine.stats.startup_bytes);
        Value::Percent(ratio(data_bytes(context), beyond_start).min(1.0) * 100.0)
    }),
    field("allocator_allocated", |context| used_bytes(context).into()).gauge("allocator_allocated_bytes"),
    field("allocator_active", |context| held_bytes(context).into()).gauge("allocator_active_bytes"),
    field("allocator_resident", |context| held_bytes(context).into()).gauge("allocator_resident_bytes"),
    none("allocator_muzzy").gauge("allocator_muzzy_bytes"),
    field("total_system_memory", |context| context.facts.total_memory.into()).gauge("total_system_memory_bytes"),
    field("total_system_memory_human", |context| Value::Human(context.facts.total_memory)),
    field("used_memory_lua", |context| context.engine.scripts.vm_bytes().into()).gauge("memory_used_lua_bytes"),
    field("used_memory_vm_eval", |context| context.engine.scripts.vm_bytes().into()).gauge("memory_used_vm_eval_bytes"),
    field("used_memory_lua_human", |context| Value::Human(context.engine.scripts.vm_bytes() as u64)),
    field("used_memory_scripts_eval", |context| context.engine.scripts.cache.memory_bytes().into())
        .gauge("memory_used_scripts_eval_bytes"),
    field("number_of_cached_scripts", |context| context.engine.scripts.cache.len().into())
        .gauge("number_of_cached_scripts"),
    field("number_of_functions", |context| context.engine.scripts.functions.registry.function_count().into())
        .gauge("number_of_functions"),
    field("number_of_libraries", |context| context.engine.scripts.functions.registry.library_count().into())
        .gauge("number_of_libraries"),
    field("used_memory_vm_functions", |context| context.engine.scripts.functions.vm_bytes().into())
        .gauge("memory_used_vm_functions_bytes"),
    field("used_memory_vm_total", |context| context.engine.scripts.all_machine_bytes().into())
        .gauge("memory_used_vm_total"),
    field("used_memory_vm_total_human", |context| Value::Human(context.engine.scripts.all_machine_bytes() as u64)),
    field("used_memory_functions", |context| context.engine.scripts.functions.registry.memory_bytes().into())
        .gauge("memory_used_functions_bytes"),
    field("used_memory_scripts", |context| context.engine.scripts.source_bytes().into())
        .gauge("memory_used_scripts_bytes"),
    field("used_memory_scripts_human", |context| Value::Human(context.engine.scripts.source_bytes() as u64)),
    field("maxmemory", |context| context.engine.settings.max_memory_bytes.into()).gauge("memory_max_bytes"),
    field("maxmemory_human", |context| Value::Human(context.engine.settings.max_memory_bytes)),
    field("maxmemory_policy", |context| context.engine.settings.policy.name().into()),
    field("allocator_frag_ratio", |context| Value::Hundredths(ratio(held_bytes(context), used_bytes(context))))
        .gauge("allocator_frag_ratio"),
    field("allocator_frag_bytes", |context| held_bytes(context).saturating_sub(used_bytes(context)).into())
        .gauge("allocator_frag_bytes"),
    field("allocator_rss_ratio", |context| Value::Hundredths(ratio(held_bytes(context), held_bytes(context))))
        .gauge("allocator_rss_ratio"),
    none("allocator_rss_bytes").gauge("allocator_rss_bytes"),
    field("rss_overhead_ratio", |context| Value::Hundredths(ratio(context.usage.resident_bytes, held_bytes(context)))),
    field("rss_overhead_bytes", |context| context.usage.resident_bytes.saturating_sub(held_bytes(context)).into()),
    field("mem_fragmentation_ratio", |context| {
        Value::Hundredths(ratio(context.usage.resident_bytes, used_bytes(context)))
    })
    .gauge("mem_fragmentation_ratio"),
    field("mem_fragmentation_bytes", |context| {
        context.usage.resident_bytes.cast_signed().wrapping_sub(used_bytes(context).cast_signed()).into()
    })
    .gauge("mem_fragmentation_bytes"),
    field("mem_not_counted_for_evict", |context| context.aof().progress.unwritten().into())
        .gauge("mem_not_counted_for_eviction_bytes"),
    none("mem_replication_backlog").gauge("mem_replication_backlog_bytes"),
    none("mem_total_replication_buffers").gauge("mem_total_replication_buffers_bytes"),
    none("mem_replica_full_sync_buffer"),
    none("mem_clients_slaves").gauge("mem_clients_slaves"),
    field("mem_clients_normal", |context| memory::client_bytes(context.engine).into()).gauge("mem_clients_normal"),
    none("mem_cluster_links").gauge("mem_cluster_links_bytes"),
    field("mem_aof_buffer", |context| context.aof().progress.unwritten().into()).gauge("mem_aof_buffer_bytes"),
    field("mem_allocator", |context| context.facts.allocator.into()),
    none("mem_overhead_db_hashtable_rehashing").gauge("mem_overhead_db_hashtable_rehashing_bytes"),
    none("active_defrag_running").gauge("active_defrag_running"),
    none("lazyfree_pending_objects").gauge("lazyfree_pending_objects"),
    field("lazyfreed_objects", |context| context.engine.stats.freed_lazily.into()).gauge("lazyfreed_objects"),
];

pub(super) const PERSISTENCE: &[Field] = &[
    field("loading", |context| u8::from(context.engine.persistence.loading.is_some()).into())
        .gauge("loading_dump_file"),
    none("async_loading").gauge("async_loading"),
    field("current_cow_peak", |context| copied_bytes(context).into()),
    field("current_cow_size", |context| copied_bytes(context).into()),
    none("current_cow_size_age"),
    field("current_fork_perc", |context| Value::Hundredths(context.saving().map_or(0.0, Saving::percent))),
    field("current_save_keys_processed", |context| context.saving().map_or(0, Saving::saved_keys).into()),
    field("current_save_keys_total", |context| context.saving().map_or(0, |saving| saving.keys).into()),
    field("rdb_changes_since_last_save", |context| {
        context.engine.persistence.unsaved(context.engine.stats.changes).into()
    })
    .gauge("rdb_changes_since_last_save"),
    field("rdb_bgsave_in_progress", |context| u8::from(context.saving().is_some()).into())
        .gauge("rdb_bgsave_in_progress"),
    field("rdb_last_save_time", |context| context.engine.persistence.last_save.unix_s().into())
        .gauge("rdb_last_save_timestamp_seconds"),
    field("rdb_last_bgsave_status", |context| if context.engine.persistence.is_last_ok { "ok" } else { "err" }.into())
        .gauge("rdb_last_bgsave_status"),
    field("rdb_last_bgsave_time_sec", |context| context.engine.persistence.last_save_s.unwrap_or(-1).into())
        .gauge("rdb_last_bgsave_duration_sec"),
    field("rdb_current_bgsave_time_sec", |context| {
        context.saving().map_or(-1, |saving| context.engine.now().unix_s() - saving.began.unix_s()).into()
    })
    .gauge("rdb_current_bgsave_duration_sec"),
    field("rdb_saves", |context| context.engine.persistence.saves.into()).gauge("rdb_saves_total"),
    field("rdb_last_cow_size", |context| context.engine.persistence.last_copied_bytes.into())
        .gauge("rdb_last_cow_size_bytes"),
    field("rdb_last_load_keys_expired", |context| context.engine.persistence.loaded.expired.into())
        .gauge("rdb_last_load_expired_keys"),
    field("rdb_last_load_keys_loaded", |context| context.engine.persistence.loaded.keys.into())
        .gauge("rdb_last_load_loaded_keys"),
    field("aof_enabled", |context| u8::from(context.aof().is_on()).into()).gauge("aof_enabled"),
    field("aof_rewrite_in_progress", |context| u8::from(context.aof().rewrite.is_some()).into())
        .gauge("aof_rewrite_in_progress"),
    field("aof_rewrite_scheduled", |context| u8::from(context.aof().rewrite_scheduled).into())
        .gauge("aof_rewrite_scheduled"),
    field("aof_last_rewrite_time_sec", |context| context.aof().last_rewrite_s.unwrap_or(-1).into())
        .gauge("aof_last_rewrite_duration_sec"),
    field("aof_current_rewrite_time_sec", |context| {
        context.aof().rewrite.map_or(-1, |rewrite| context.engine.now().unix_s() - rewrite.began.unix_s()).into()
    })
    .gauge("aof_current_rewrite_duration_sec"),
    field("aof_last_bgrewrite_status", |context| if context.aof().last_rewrite_failed { "err" } else { "ok" }.into())
        .gauge("aof_last_bgrewrite_status"),
    field("aof_rewrites", |context| context.aof().rewrites_begun.into()),
    field("aof_rewrites_consecutive_failures", |context| context.aof().rewrite_failures.into()),
    field("aof_last_write_status", |context| if context.aof().write_error.is_some() { "err" } else { "ok" }.into())
        .gauge("aof_last_write_status"),
    field("aof_last_cow_size", |context| context.aof().last_copied_bytes.into()).gauge("aof_last_cow_size_bytes"),
    none("module_fork_in_progress").gauge("module_fork_in_progress"),
    none("module_fork_last_cow_size").gauge("module_fork_last_cow_size"),
    appending("aof_current_size", |context| context.aof().progress.total_bytes.load(Ordering::Relaxed).into())
        .gauge("aof_current_size_bytes"),
    appending("aof_base_size", |context| context.aof().progress.base_bytes.load(Ordering::Relaxed).into())
        .gauge("aof_base_size_bytes"),
    appending("aof_pending_rewrite", |_| 0_u8.into()).gauge("aof_pending_rewrite"),
    appending("aof_buffer_length", |context| context.aof().progress.unwritten().into()).gauge("aof_buffer_length"),
    appending("aof_pending_bio_fsync", |context| u8::from(context.aof().progress.is_syncing()).into())
        .gauge("aof_pending_bio_fsync"),
    appending("aof_delayed_fsync", |context| context.aof().progress.delayed.load(Ordering::Relaxed).into())
        .gauge("aof_delayed_fsync"),
    loading("loading_start_time", |context| context.loading().began.unix_s().into()),
    loading("loading_total_bytes", |context| context.loading().total_bytes.into()),
    loading("loading_rdb_used_mem", |context| context.loading().used_bytes.into()),
    loading("loading_loaded_bytes", |context| context.loading().loaded_bytes.into()),
    loading("loading_loaded_perc", |context| Value::Percent(context.loading().percent())),
    loading("loading_eta_seconds", |context| context.loading().eta_s(context.engine.now()).into()),
];

/// The bytes that were copied since the save in progress began, because they changed.
fn copied_bytes(context: &InfoContext<'_>) -> usize {
    if context.saving().is_some() { context.engine.databases.copied_bytes() } else { 0 }
}

/// A field that is shown only while the append-only file is on.
const fn appending(name: &'static str, value: for<'s> fn(&'s InfoContext<'s>) -> Value<'s>) -> Field {
    Field { is_shown: |context| context.aof().is_on(), ..field(name, value) }
}

/// A field that is shown only while a file is being loaded.
const fn loading(name: &'static str, value: for<'s> fn(&'s InfoContext<'s>) -> Value<'s>) -> Field {
    Field { is_shown: |context| context.engine.persistence.loading.is_some(), ..field(name, value) }
}

pub(super) const STATS: &[Field] = &[
    field("total_connections_received", |context| context.engine.stats.connections.into())
        .counter("connections_received_total"),
    field("total_commands_processed", |context| context.engine.stats.commands.into())
        .counter("commands_processed_total"),
    field("instantaneous_ops_per_sec", |context| rates(context).commands.into()),
    field("total_net_input_bytes", |context| context.engine.stats.received_bytes.into())
        .counter("net_input_bytes_total"),
    field("total_net_output_bytes", |context| context.engine.stats.sent_bytes.into()).counter("net_output_bytes_total"),
    none("total_net_repl_input_bytes").counter("net_repl_input_bytes_total"),
    none("total_net_repl_output_bytes").counter("net_repl_output_bytes_total"),
    field("instantaneous_input_kbps", |context| Value::Hundredths(rates(context).received_bytes as f64 / 1024.0)),
    field("instantaneous_output_kbps", |context| Value::Hundredths(rates(context).sent_bytes as f64 / 1024.0)),
    field("instantaneous_input_repl_kbps", |_| Value::Hundredths(0.0)),
    field("instantaneous_output_repl_kbps", |_| Value::Hundredths(0.0)),
    field("rejected_connections", |context| context.engine.stats.connections_refused.into())
        .counter("rejected_connections_total"),
    field("sync_full", |context| context.engine.stats.full_syncs.into()).gauge("replica_resyncs_full"),
    field("sync_partial_ok", |context| context.engine.stats.partial_syncs.into())
        .gauge("replica_partial_resync_accepted"),
    field("sync_partial_err", |context| context.engine.stats.refused_partial_syncs.into())
        .gauge("replica_partial_resync_denied"),
    field("expired_subkeys", |context| context.engine.stats.expired_fields.into()).counter("expired_subkeys_total"),
    field("expired_keys", |context| context.engine.stats.expired_keys.into()).counter("expired_keys_total"),
    field("expired_stale_perc", |_| "0.00".into()).gauge("expired_stale_percentage"),
    none("expired_time_cap_reached_count").counter("expired_time_cap_reached_total"),
    field("expire_cycle_cpu_milliseconds", |context| (context.engine.stats.expiring_us / 1000).into())
        .counter("expire_cycle_cpu_time_ms_total"),
    field("evicted_keys", |context| context.engine.stats.evicted_keys.into()).counter("evicted_keys_total"),
    field("evicted_clients", |context| context.engine.stats.evicted_clients.into()).counter("evicted_clients_total"),
    field("evicted_scripts", |context| context.engine.scripts.cache.evicted.into()).counter("evicted_scripts_total"),
    field("total_eviction_exceeded_time", |context| {
        ((context.engine.stats.short_of_memory_us + short_us(context)) / 1000).into()
    })
    .counter("eviction_exceeded_time_ms_total"),
    field("current_eviction_exceeded_time", |context| (short_us(context) / 1000).into())
        .gauge("current_eviction_exceeded_time_ms"),
    field("keyspace_hits", |context| context.engine.stats.keyspace_hits.into()).counter("keyspace_hits_total"),
    field("keyspace_misses", |context| context.engine.stats.keyspace_misses.into()).counter("keyspace_misses_total"),
    field("pubsub_channels", |context| context.engine.observers.subscriptions.count(Topic::Channel).into())
        .gauge("pubsub_channels"),
    field("pubsub_patterns", |context| context.engine.observers.subscriptions.count(Topic::Pattern).into())
        .gauge("pubsub_patterns"),
    field("pubsubshard_channels", |context| context.engine.observers.subscriptions.count(Topic::Shard).into())
        .gauge("pubsubshard_channels"),
    field("latest_fork_usec", |context| context.engine.persistence.last_checkpoint_us.into()),
    none("total_forks"),
    field("migrate_cached_sockets", |context| context.usage.kept_connections.into())
        .gauge("migrate_cached_sockets_total"),
    none("slave_expires_tracked_keys").gauge("slave_expires_tracked_keys"),
    none("active_defrag_hits").gauge("defrag_hits"),
    none("active_defrag_misses").gauge("defrag_misses"),
    none("active_defrag_key_hits").gauge("defrag_key_hits"),
    none("active_defrag_key_misses").gauge("defrag_key_misses"),
    none("total_active_defrag_time"),
    none("current_active_defrag_time"),
    field("tracking_total_keys", |context| context.engine.observers.tracking.keys().into())
        .gauge("tracking_total_keys"),
    field("tracking_total_items", |context| context.engine.observers.tracking.items().into())
        .gauge("tracking_total_items"),
    field("tracking_total_prefixes", |context| context.engine.observers.tracking.prefixes().into())
        .gauge("tracking_total_prefixes"),
    none("unexpected_error_replies").counter("unexpected_error_replies"),
    field("total_error_replies", |context| context.engine.stats.errors.into()).counter("total_error_replies"),
    none("dump_payload_sanitizations").counter("dump_payload_sanitizations"),
    field("total_reads_processed", |context| {
        context.engine.stats.transfers.iter().map(|one| one.reads).sum::<u64>().into()
    })
    .counter("total_reads_processed"),
    field("total_writes_processed", |context| {
        context.engine.stats.transfers.iter().map(|one| one.writes).sum::<u64>().into()
    })
    .counter("total_writes_processed"),
    field("io_threaded_reads_processed", |context| {
        context.engine.stats.transfers.iter().skip(1).map(|one| one.reads).sum::<u64>().into()
    })
    .counter("io_threaded_reads_processed"),
    field("io_threaded_writes_processed", |context| {
        context.engine.stats.transfers.iter().skip(1).map(|one| one.writes).sum::<u64>().into()
    })
    .counter("io_threaded_writes_processed"),
    field("client_query_buffer_limit_disconnections", |context| {
        context.engine.stats.query_buffer_disconnections.into()
    })
    .counter("client_query_buffer_limit_disconnections_total"),
    field("client_output_buffer_limit_disconnections", |context| {
        context.engine.stats.output_buffer_disconnections.into()
    })
    .counter("client_output_buffer_limit_disconnections_total"),
    none("reply_buffer_shrinks").counter("reply_buffer_shrinks_total"),
    none("reply_buffer_expands").counter("reply_buffer_expands_total"),
    field("eventloop_cycles", |context| cycles(context).count.into()).counter("eventloop_cycles_total"),
    field("eventloop_duration_sum", |context| cycles(context).busy_us.into())
        .counter("eventloop_duration_sum_usec_total"),
    field("eventloop_duration_cmd_sum", |context| context.engine.stats.running_us.into())
        .counter("eventloop_duration_cmd_sum_usec_total"),
    field("instantaneous_eventloop_cycles_per_sec", |context| rates(context).cycles.into())
        .gauge("instantaneous_eventloop_cycles_per_sec"),
    field("instantaneous_eventloop_duration_usec", |context| {
        rates(context).busy_us.checked_div(rates(context).cycles).unwrap_or(0).into()
    })
    .gauge("instantaneous_eventloop_duration_usec"),
    field("acl_access_denied_auth", |context| context.engine.stats.denials(Reason::Auth).into())
        .counter("acl_access_denied_auth_total"),
    field("acl_access_denied_cmd", |context| context.engine.stats.denials(Reason::Command).into())
        .counter("acl_access_denied_cmd_total"),
    field("acl_access_denied_key", |context| context.engine.stats.denials(Reason::Key).into())
        .counter("acl_access_denied_key_total"),
    field("acl_access_denied_channel", |context| context.engine.stats.denials(Reason::Channel).into())
        .counter("acl_access_denied_channel_total"),
    Field {
        is_shown: |context| cluster_compatibility::is_sampling(context.engine),
        ..field("cluster_incompatible_ops", |context| context.engine.stats.cluster_incompatible_operations.into())
    },
];

pub(super) const PROCESSOR: &[Field] = &[
    field("used_cpu_sys", |context| Value::Seconds(processor_time(context).process.system_us))
        .counter("cpu_sys_seconds_total"),
    field("used_cpu_user", |context| Value::Seconds(processor_time(context).process.user_us))
        .counter("cpu_user_seconds_total"),
    field("used_cpu_sys_children", |_| Value::Seconds(0)).counter("cpu_sys_children_seconds_total"),
    field("used_cpu_user_children", |_| Value::Seconds(0)).counter("cpu_user_children_seconds_total"),
    field("used_cpu_sys_main_thread", |context| Value::Seconds(processor_time(context).thread.system_us))
        .counter("cpu_sys_main_thread_seconds_total"),
    field("used_cpu_user_main_thread", |context| Value::Seconds(processor_time(context).thread.user_us))
        .counter("cpu_user_main_thread_seconds_total"),
];

/// Shown only when requested by name.
pub(super) const DEBUG: &[Field] = &[
    none("eventloop_duration_aof_sum"),
    field("eventloop_duration_cron_sum", |context| context.engine.stats.expiring_us.into()),
    field("eventloop_duration_max", |context| context.engine.host.loop_cycles().longest_us.into()),
    field("eventloop_cmd_per_cycle_max", |context| context.engine.stats.most_commands.into()),
    field("allocator_allocated_lua", |context| context.engine.scripts.all_machine_bytes().into()),
    field("allocator_active_lua", |context| context.engine.scripts.all_machine_bytes().into()),
    field("allocator_resident_lua", |context| context.engine.scripts.all_machine_bytes().into()),
    none("allocator_frag_bytes_lua"),
];

pub(super) const CLUSTER: &[Field] =
    &[field("cluster_enabled", |context| u8::from(context.engine.peers.cluster.is_some()).into())
        .gauge("cluster_enabled")];

/// The replication id: 40 hexadecimal digits.
fn processor_time(context: &InfoContext<'_>) -> ProcessorTimes {
    *context.processor_time.get_or_init(|| context.engine.host.processor_time())
}

/// Bytes of keys and values with their tables.
fn data_bytes(context: &InfoContext<'_>) -> u64 {
    *context.data_bytes.get_or_init(|| context.engine.databases.memory_bytes() as u64)
}

/// Bytes that the allocator holds, as Redis reports them where the allocator has no statistics: the process without
/// scripts.
fn held_bytes(context: &InfoContext<'_>) -> u64 {
    context.usage.resident_bytes.saturating_sub(context.engine.scripts.all_machine_bytes() as u64)
}

/// The seconds since the server started.
pub(super) fn uptime_s(context: &InfoContext<'_>) -> u64 {
    context.now.since_us(context.engine.timing.started()) / 1_000_000
}

/// The recent rate per second of something.
fn rates(context: &InfoContext<'_>) -> Counts {
    *context.rates.get_or_init(|| context.engine.stats.instant_metrics.rates(context.now))
}

/// The counted iterations of the event loops.
fn cycles(context: &InfoContext<'_>) -> LoopCycles {
    context.engine.host.loop_cycles().since(context.engine.stats.cycles_before)
}

/// The time for which memory has been over its limit, in microseconds.
fn short_us(context: &InfoContext<'_>) -> u64 {
    context.engine.databases.pressure.short_us(context.engine.host.elapsed_us())
}

/// The bytes allocated, or the bytes of the data where allocations are not counted.
fn used_bytes(context: &InfoContext<'_>) -> u64 {
    *context.used_bytes.get_or_init(|| memory::used_bytes(context.engine, &context.usage))
}

fn peak_bytes(context: &InfoContext<'_>) -> u64 {
    memory::peak_bytes(context.engine, &context.usage)
}
