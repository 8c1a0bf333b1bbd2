//! The type byte of a payload: the form of the value that follows.

/// A text.
pub const TEXT: u8 = 0;
pub(super) const LIST: u8 = 1;
pub(super) const SET: u8 = 2;
pub(super) const ZSET: u8 = 3;
pub(super) const HASH: u8 = 4;
/// A sorted set with its scores as binary doubles.
pub(super) const ZSET_2: u8 = 5;
/// A value of a module, in the form before and since 4.0.
pub(super) const MODULE: u8 = 6;
pub(super) const MODULE_2: u8 = 7;
pub(super) const HASH_ZIPMAP: u8 = 9;
pub(super) const LIST_ZIPLIST: u8 = 10;
pub(super) const SET_INTSET: u8 = 11;
pub(super) const ZSET_ZIPLIST: u8 = 12;
pub(super) const HASH_ZIPLIST: u8 = 13;
pub(super) const STREAM: u8 = 15;
/// A stream with the number of entries that each group has read.
pub(super) const STREAM_2: u8 = 19;
/// A stream that also has the time when each consumer was last active.
pub(super) const STREAM_3: u8 = 21;
/// A list whose nodes are ziplists.
pub(super) const LIST_QUICKLIST: u8 = 14;
pub(super) const HASH_LISTPACK: u8 = 16;
pub(super) const ZSET_LISTPACK: u8 = 17;
/// A list whose nodes are listpacks or single elements.
pub(super) const LIST_QUICKLIST_2: u8 = 18;
pub(super) const SET_LISTPACK: u8 = 20;
/// A hash whose fields have deadlines, as versions before 7.4.0 wrote it.
pub(super) const HASH_METADATA_PRE_GA: u8 = 22;
pub(super) const HASH_LISTPACK_EX_PRE_GA: u8 = 23;
/// A hash whose fields have deadlines, each relative to the earliest one.
pub(super) const HASH_METADATA: u8 = 24;
/// A hash as a listpack of field, value and deadline triples.
pub(super) const HASH_LISTPACK_EX: u8 = 25;
/// In files of Valkey 9: a hash whose fields have deadlines, each as it is.
pub(super) const HASH_VALKEY: u8 = 22;

/// The first version that has values of that type, among the types that are written.
pub(super) fn version(kind: u8) -> u16 {
    match kind {
        HASH_METADATA | HASH_LISTPACK_EX => 12,
        SET_LISTPACK | STREAM_3 => 11,
        _ => 10,
    }
}

/// Whether a value of that type can be read.
pub(super) fn is_known(kind: u8) -> bool {
    kind <= HASH_LISTPACK_EX && !matches!(kind, MODULE | 8)
}

/// The form of the values of that type as the log names it, in Redis's words.
pub(super) fn form(kind: u8) -> &'static str {
    match kind {
        TEXT => "String",
        LIST | LIST_QUICKLIST_2 => "List",
        LIST_ZIPLIST => "List ziplist",
        LIST_QUICKLIST => "Quicklist ziplist",
        SET => "Set",
        SET_INTSET => "Intset",
        SET_LISTPACK => "Set listpack",
        ZSET | ZSET_2 => "Zset",
        ZSET_ZIPLIST => "Zset ziplist",
        ZSET_LISTPACK => "Zset listpack",
        HASH | HASH_METADATA_PRE_GA | HASH_METADATA => "Hash",
        HASH_ZIPMAP => "Zipmap",
        HASH_ZIPLIST => "Hash ziplist",
        HASH_LISTPACK => "Hash listpack",
        HASH_LISTPACK_EX_PRE_GA | HASH_LISTPACK_EX => "Hash listpack with TTL",
        STREAM | STREAM_2 | STREAM_3 => "Stream listpack",
        _ => "Type byte",
    }
}
