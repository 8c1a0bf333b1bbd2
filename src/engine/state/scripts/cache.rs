//! The script cache: scripts by the SHA-1 digest of their source (EVALSHA).
//!
//! Scripts from SCRIPT LOAD stay until SCRIPT FLUSH. Of those from EVAL the 500 most recently used ones stay: programs
//! that write their arguments into the source would fill memory otherwise. The first command that brought a script
//! decides: SCRIPT LOAD of a cached script changes nothing, as in Redis.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::engine::spec::Error;
use crate::script::{Compiled, Header, LuaVm, sha1_hex};

/// The number of scripts from EVAL that stay cached.
const MAX_EVALUATED: usize = 500;

/// The name of a script: the SHA-1 digest of its source, as 40 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 40]);

impl Digest {
    /// The name of a script with this source.
    pub fn of(source: &[u8]) -> Digest {
        Digest(sha1_hex(source))
    }

    /// Parses a name, in any case; `None` when it is not one.
    pub fn parse(word: &[u8]) -> Option<Digest> {
        let digits: [u8; 40] = word.try_into().ok()?;
        Some(Digest(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// The digits of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The digits of the name as text.
    pub fn to_text(self) -> String {
        self.0.iter().map(|&digit| char::from(digit)).collect()
    }
}

/// A cached script.
#[derive(Debug)]
pub struct CachedScript {
    /// The options in its first line.
    pub header: Header,
    source: Arc<[u8]>,
    /// The compiled function of the virtual machine; `None` when that was replaced.
    pub(in crate::engine) compiled: Option<Compiled>,
    /// The script was loaded by SCRIPT LOAD.
    is_loaded: bool,
    used: u64,
}

/// The scripts that were cached at some moment.
#[derive(Clone, Debug)]
pub struct SavedScripts(Vec<SavedScript>);

#[derive(Clone, Debug)]
struct SavedScript {
    digest: Digest,
    header: Header,
    source: Arc<[u8]>,
    is_loaded: bool,
    used: u64,
}

/// All cached scripts.
///
/// Invariant: `evaluated` has each script from EVAL once, with a use that is its last or an earlier one. `source_bytes`
/// is what all sources have.
#[derive(Debug, Default)]
pub struct Cache {
    scripts: HashMap<Digest, CachedScript>,
    /// The scripts from EVAL, the least recently used first. A use of a script does not move it: its place is corrected
    /// when it is to be evicted.
    evaluated: BinaryHeap<Reverse<(u64, Digest)>>,
    /// Bytes of all sources.
    source_bytes: usize,
    uses: u64,
    /// The number of evicted scripts.
    pub evicted: u64,
}

impl Cache {
    /// The number of cached scripts.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// True when no script is cached.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty()
    }

    /// The options in the first line of that script.
    pub fn header(&self, digest: Digest) -> Option<&Header> {
        self.scripts.get(&digest).map(|cached| &cached.header)
    }

    /// The names of the cached scripts, in no particular order.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.scripts.keys().copied()
    }

    /// True when that script is cached.
    pub fn contains(&self, digest: Digest) -> bool {
        self.scripts.contains_key(&digest)
    }

    /// Bytes that the cached scripts take. O(1): under `maxmemory` each command reads it.
    pub fn memory_bytes(&self) -> usize {
        self.scripts.len() * size_of::<(Digest, CachedScript)>() + self.source_bytes
    }

    /// The script of that name, ready to run on `vm`, until [`Cache::put_back_compiled`]. If it never comes back,
    /// because running it panicked, it is compiled anew the next time.
    ///
    /// # Errors
    /// There is no such script, or it cannot be compiled any more.
    pub(in crate::engine) fn take_compiled(
        &mut self,
        digest: Digest,
        vm: &mut LuaVm,
    ) -> Result<(Header, Compiled), Error> {
        let cached = self.scripts.get_mut(&digest).ok_or(Error::NoScript)?;
        self.uses += 1;
        cached.used = self.uses;
        let compiled = match cached.compiled.take() {
            Some(compiled) => compiled,
            None => compile(&cached.source, vm)?.1,
        };
        Ok((cached.header.clone(), compiled))
    }

    /// Puts a script back that was taken to run.
    pub(in crate::engine) fn put_back_compiled(&mut self, digest: Digest, compiled: Compiled) {
        if let Some(cached) = self.scripts.get_mut(&digest) {
            cached.compiled = Some(compiled);
        }
    }

    /// Adds a script, if it is not cached yet.
    ///
    /// # Errors
    /// The fault in the script.
    pub(in crate::engine) fn add(
        &mut self,
        source: &[u8],
        digest: Digest,
        is_loaded: bool,
        vm: &mut LuaVm,
    ) -> Result<(), Error> {
        if self.contains(digest) {
            return Ok(());
        }
        let (header, compiled) = compile(source, vm)?;
        self.uses += 1;
        if !is_loaded {
            if self.evaluated.len() >= MAX_EVALUATED {
                self.evict(vm);
            }
            self.evaluated.push(Reverse((self.uses, digest)));
        }
        let cached =
            CachedScript { header, source: source.into(), compiled: Some(compiled), is_loaded, used: self.uses };
        self.source_bytes += source.len();
        self.scripts.insert(digest, cached);
        Ok(())
    }

    /// Evicts the least recently used script from EVAL.
    fn evict(&mut self, vm: &mut LuaVm) {
        while let Some(mut first) = self.evaluated.peek_mut() {
            let Reverse((used, digest)) = *first;
            match self.scripts.get(&digest) {
                Some(cached) if cached.used > used => *first = Reverse((cached.used, digest)),
                _ => {
                    PeekMut::pop(first);
                    if let Some(cached) = self.scripts.remove(&digest) {
                        self.source_bytes -= cached.source.len();
                        cached.compiled.into_iter().for_each(|compiled| vm.forget(compiled));
                    }
                    self.evicted += 1;
                    return;
                }
            }
        }
    }

    /// The list of cached scripts, to be restored later.
    pub(in crate::engine) fn saved(&self) -> SavedScripts {
        let saved = self.scripts.iter().map(|(digest, cached)| SavedScript {
            digest: *digest,
            header: cached.header.clone(),
            source: Arc::clone(&cached.source),
            is_loaded: cached.is_loaded,
            used: cached.used,
        });
        SavedScripts(saved.collect())
    }

    /// Replaces all scripts by those. Scripts that are cached already are not compiled again.
    pub(in crate::engine) fn restore(&mut self, saved: SavedScripts, vm: Option<&mut LuaVm>) {
        let mut before = std::mem::take(&mut self.scripts);
        for SavedScript { digest, header, source, is_loaded, used } in saved.0 {
            let compiled = before.remove(&digest).and_then(|cached| cached.compiled);
            self.scripts.insert(digest, CachedScript { header, source, compiled, is_loaded, used });
        }
        self.source_bytes = self.scripts.values().map(|cached| cached.source.len()).sum();
        let evaluated = self.scripts.iter().filter(|(_, cached)| !cached.is_loaded);
        self.evaluated = evaluated.map(|(digest, cached)| Reverse((cached.used, *digest))).collect();
        if let Some(vm) = vm {
            before.into_values().filter_map(|cached| cached.compiled).for_each(|compiled| vm.forget(compiled));
        }
    }

    /// An empty cache that continues this one's counters.
    pub(in crate::engine) fn flushed(&self) -> Cache {
        Cache { evicted: self.evicted, ..Cache::default() }
    }

    /// Frees all compiled functions in their virtual machine.
    pub(in crate::engine) fn forget_all(&mut self, vm: &mut LuaVm) {
        let compiled = self.scripts.values_mut().filter_map(|cached| cached.compiled.take());
        compiled.for_each(|compiled| vm.forget(compiled));
    }

    /// Drops all compiled functions: the virtual machine was replaced.
    pub(in crate::engine) fn uncompile(&mut self) {
        self.scripts.values_mut().for_each(|cached| cached.compiled = None);
    }
}

fn compile(source: &[u8], vm: &mut LuaVm) -> Result<(Header, Compiled), Error> {
    let (header, skipped) = Header::read(source).map_err(|error| Error::Shebang(error.to_string()))?;
    let compiled = vm.compile(&source[skipped..]).map_err(Error::ScriptDoesNotCompile)?;
    Ok((header, compiled))
}
