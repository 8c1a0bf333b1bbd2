//! Scripts that were sent before, by the SHA-1 of their source.
//!
//! Those that came with SCRIPT LOAD stay until SCRIPT FLUSH. Of those that came with EVAL the last 500 that were used
//! stay: programs that write their arguments into the source would fill memory otherwise. A script is what it came with
//! first: SCRIPT LOAD of one that is kept changes nothing, as in Redis.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Error;
use crate::script::{Compiled, Header, LuaVm, sha1_hex};

/// How many scripts stay that came with EVAL.
const MOST_EVALUATED: usize = 500;

/// The name of a script: 40 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 40]);

impl Digest {
    /// That of a source.
    pub fn of(source: &[u8]) -> Digest {
        Digest(sha1_hex(source))
    }

    /// The one that a client wrote, in any case; `None` when it is none.
    pub fn parse(word: &[u8]) -> Option<Digest> {
        let digits: [u8; 40] = word.try_into().ok()?;
        Some(Digest(digits.map(|digit| digit.to_ascii_lowercase())))
    }

    /// Its digits.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its digits as text.
    pub fn to_text(self) -> String {
        self.0.iter().map(|&digit| char::from(digit)).collect()
    }
}

/// A script that is kept.
#[derive(Debug)]
pub struct CachedScript {
    /// What its first line says.
    pub header: Header,
    source: Arc<[u8]>,
    /// As a function of the virtual machine; `None` when that was made anew.
    pub(super) compiled: Option<Compiled>,
    /// It came with SCRIPT LOAD.
    is_loaded: bool,
    used: u64,
}

/// The scripts that were kept at some time.
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

/// All scripts that are kept.
#[derive(Debug, Default)]
pub struct Cache {
    scripts: BTreeMap<Digest, CachedScript>,
    evaluated: usize,
    uses: u64,
    /// How many had to make room.
    pub evicted: u64,
}

impl Cache {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty()
    }

    /// What the first line of that script says.
    pub fn header(&self, digest: Digest) -> Option<&Header> {
        self.scripts.get(&digest).map(|cached| &cached.header)
    }

    /// Those that are kept.
    pub fn digests(&self) -> impl Iterator<Item = Digest> {
        self.scripts.keys().copied()
    }

    /// True when that one is kept.
    pub fn contains(&self, digest: Digest) -> bool {
        self.scripts.contains_key(&digest)
    }

    /// Bytes that they take.
    pub fn memory_bytes(&self) -> usize {
        self.scripts.values().map(|cached| size_of::<(Digest, CachedScript)>() + cached.source.len()).sum()
    }

    /// The script of that name, ready to run on `vm`, until [`Cache::put_back_compiled`]. If it never comes back,
    /// because running it panicked, it is compiled anew the next time.
    ///
    /// # Errors
    /// There is none, or it cannot be compiled any more.
    pub(super) fn take_compiled(&mut self, digest: Digest, vm: &mut LuaVm) -> Result<(Header, Compiled), Error> {
        let cached = self.scripts.get_mut(&digest).ok_or(Error::NoScript)?;
        self.uses += 1;
        cached.used = self.uses;
        let compiled = match cached.compiled.take() {
            Some(compiled) => compiled,
            None => compile(&cached.source, vm)?.1,
        };
        Ok((cached.header.clone(), compiled))
    }

    /// Takes a script back that was taken.
    pub(super) fn put_back_compiled(&mut self, digest: Digest, compiled: Compiled) {
        if let Some(cached) = self.scripts.get_mut(&digest) {
            cached.compiled = Some(compiled);
        }
    }

    /// Keeps a script, if it is not kept yet.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn add(&mut self, source: &[u8], digest: Digest, is_loaded: bool, vm: &mut LuaVm) -> Result<(), Error> {
        if self.contains(digest) {
            return Ok(());
        }
        let (header, compiled) = compile(source, vm)?;
        if !is_loaded {
            if self.evaluated >= MOST_EVALUATED {
                self.evict(vm);
            }
            self.evaluated += 1;
        }
        self.uses += 1;
        let cached =
            CachedScript { header, source: source.into(), compiled: Some(compiled), is_loaded, used: self.uses };
        self.scripts.insert(digest, cached);
        Ok(())
    }

    /// Forgets the one that was not used for the longest time.
    fn evict(&mut self, vm: &mut LuaVm) {
        let evaluated = self.scripts.iter().filter(|(_, cached)| !cached.is_loaded);
        let Some(digest) = evaluated.min_by_key(|(_, cached)| cached.used).map(|(digest, _)| *digest) else { return };
        if let Some(compiled) = self.scripts.remove(&digest).and_then(|cached| cached.compiled) {
            vm.forget(compiled);
        }
        self.evaluated -= 1;
        self.evicted += 1;
    }

    /// Which scripts are kept now.
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

    /// Keeps those scripts and no others. Those that are kept already are not compiled anew.
    pub(super) fn restore(&mut self, saved: SavedScripts, vm: Option<&mut LuaVm>) {
        let mut before = std::mem::take(&mut self.scripts);
        for SavedScript { digest, header, source, is_loaded, used } in saved.0 {
            let compiled = before.remove(&digest).and_then(|cached| cached.compiled);
            self.scripts.insert(digest, CachedScript { header, source, compiled, is_loaded, used });
        }
        self.evaluated = self.scripts.values().filter(|cached| !cached.is_loaded).count();
        if let Some(vm) = vm {
            before.into_values().filter_map(|cached| cached.compiled).for_each(|compiled| vm.forget(compiled));
        }
    }

    /// A cache without scripts, which counts on.
    pub(super) fn flushed(&self) -> Cache {
        Cache { evicted: self.evicted, ..Cache::default() }
    }

    /// The virtual machine is another one: all have to be compiled anew.
    pub(super) fn uncompile(&mut self) {
        self.scripts.values_mut().for_each(|cached| cached.compiled = None);
    }
}

fn compile(source: &[u8], vm: &mut LuaVm) -> Result<(Header, Compiled), Error> {
    let (header, skipped) = Header::read(source).map_err(|error| Error::Shebang(error.to_string()))?;
    let compiled = vm.compile(&source[skipped..]).map_err(Error::ScriptDoesNotCompile)?;
    Ok((header, compiled))
}
