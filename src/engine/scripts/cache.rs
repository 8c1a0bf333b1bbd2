//! Scripts that were sent before, by the SHA-1 of their source.
//!
//! Those that came with SCRIPT LOAD stay until SCRIPT FLUSH. Of those that came with EVAL the last 500 that were used
//! stay: programs that write their arguments into the source would fill memory otherwise. A script is what it came with
//! first: SCRIPT LOAD of one that is kept changes nothing, as in Redis.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Error;
use crate::script::{Compiled, Header, Machine, sha1_hex};

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
pub struct Kept {
    /// What its first line says.
    pub header: Header,
    source: Arc<[u8]>,
    /// As a function of the machine; `None` when that was made anew.
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
    scripts: BTreeMap<Digest, Kept>,
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
        self.scripts.get(&digest).map(|kept| &kept.header)
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
        self.scripts.values().map(|kept| size_of::<(Digest, Kept)>() + kept.source.len()).sum()
    }

    /// The script of that name, ready to run on `machine`, until [`Cache::take_back`]. If it never comes back, because
    /// running it panicked, it is compiled anew the next time.
    ///
    /// # Errors
    /// There is none, or it cannot be compiled any more.
    pub(super) fn lend(&mut self, digest: Digest, machine: &mut Machine) -> Result<(Header, Compiled), Error> {
        let kept = self.scripts.get_mut(&digest).ok_or(Error::NoScript)?;
        self.uses += 1;
        kept.used = self.uses;
        let compiled = match kept.compiled.take() {
            Some(compiled) => compiled,
            None => compile(&kept.source, machine)?.1,
        };
        Ok((kept.header.clone(), compiled))
    }

    /// Takes a script back that was lent.
    pub(super) fn take_back(&mut self, digest: Digest, compiled: Compiled) {
        if let Some(kept) = self.scripts.get_mut(&digest) {
            kept.compiled = Some(compiled);
        }
    }

    /// Keeps a script, if it is not kept yet.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn add(
        &mut self,
        source: &[u8],
        digest: Digest,
        is_loaded: bool,
        machine: &mut Machine,
    ) -> Result<(), Error> {
        if self.contains(digest) {
            return Ok(());
        }
        let (header, compiled) = compile(source, machine)?;
        if !is_loaded {
            if self.evaluated >= MOST_EVALUATED {
                self.evict(machine);
            }
            self.evaluated += 1;
        }
        self.uses += 1;
        let kept = Kept { header, source: source.into(), compiled: Some(compiled), is_loaded, used: self.uses };
        self.scripts.insert(digest, kept);
        Ok(())
    }

    /// Forgets the one that was not used for the longest time.
    fn evict(&mut self, machine: &mut Machine) {
        let evaluated = self.scripts.iter().filter(|(_, kept)| !kept.is_loaded);
        let Some(digest) = evaluated.min_by_key(|(_, kept)| kept.used).map(|(digest, _)| *digest) else { return };
        if let Some(compiled) = self.scripts.remove(&digest).and_then(|kept| kept.compiled) {
            machine.forget(compiled);
        }
        self.evaluated -= 1;
        self.evicted += 1;
    }

    /// Which scripts are kept now.
    pub(in crate::engine) fn saved(&self) -> SavedScripts {
        let saved = self.scripts.iter().map(|(digest, kept)| SavedScript {
            digest: *digest,
            header: kept.header.clone(),
            source: Arc::clone(&kept.source),
            is_loaded: kept.is_loaded,
            used: kept.used,
        });
        SavedScripts(saved.collect())
    }

    /// Keeps those scripts and no others. Those that are kept already are not compiled anew.
    pub(super) fn restore(&mut self, saved: SavedScripts, machine: Option<&mut Machine>) {
        let mut before = std::mem::take(&mut self.scripts);
        for SavedScript { digest, header, source, is_loaded, used } in saved.0 {
            let compiled = before.remove(&digest).and_then(|kept| kept.compiled);
            self.scripts.insert(digest, Kept { header, source, compiled, is_loaded, used });
        }
        self.evaluated = self.scripts.values().filter(|kept| !kept.is_loaded).count();
        if let Some(machine) = machine {
            before.into_values().filter_map(|kept| kept.compiled).for_each(|compiled| machine.forget(compiled));
        }
    }

    /// A cache without scripts, which counts on.
    pub(super) fn flushed(&self) -> Cache {
        Cache { evicted: self.evicted, ..Cache::default() }
    }

    /// The machine is another one: all have to be compiled anew.
    pub(super) fn uncompile(&mut self) {
        self.scripts.values_mut().for_each(|kept| kept.compiled = None);
    }
}

fn compile(source: &[u8], machine: &mut Machine) -> Result<(Header, Compiled), Error> {
    let (header, skipped) = Header::read(source).map_err(|error| Error::Shebang(error.to_string()))?;
    let compiled = machine.compile(&source[skipped..]).map_err(Error::ScriptDoesNotCompile)?;
    Ok((header, compiled))
}
