//! Finds a segment with classes and question marks in a text, 512 of its tokens at a time.
//!
//! ```text
//! tokens:   [ab] ? c [^a] ...           512 of them are a piece: a word of 512 bits has one for each
//! state:    bit n: the first n + 1 tokens of the piece match the bytes that end here
//! ends:     bit i: all earlier pieces match the bytes that end before byte i of the window
//! ```
//!
//! For each byte of the text the state is shifted by one, a new beginning comes in where the earlier pieces end, and
//! the tokens that do not match the byte are cleared. The result is the ends of one more piece. A piece costs nothing
//! if all its tokens match every byte of the text, and a token that matches no byte ends the search.
//!
//! The text is searched in windows of as many beginnings as the segment has tokens, so that an early match is found
//! soon. Costs: the length of the segment times how far the text is searched, divided by 512; four bytes for each
//! token, and a bit for each byte of a window.
//!
//! Source: the Shift-And algorithm (Baeza-Yates, Gonnet 1992).

use super::Token;
use std::collections::HashMap;

/// Words of a state.
const WORDS: usize = 8;
/// Tokens per piece.
const PIECE: usize = 64 * WORDS;
/// The fewest beginnings that a window has.
const WINDOW: usize = 4096;
/// The token that matches every byte of the text.
const ANY: u32 = 0;

type State = [u64; WORDS];

/// The position of the first match of the segment that `pattern` begins with, which has `length` tokens.
pub(super) fn find(pattern: &[u8], length: usize, text: &[u8], ignore_case: bool) -> Option<usize> {
    let tokens = Tokens::of(pattern, length, text, ignore_case)?;
    let starts = (text.len() + 1).checked_sub(length)?;
    let window = length.max(WINDOW);
    (0..starts).step_by(window).find_map(|start| {
        let count = window.min(starts - start);
        tokens.find(&text[start..start + count + length - 1], count).map(|at| start + at)
    })
}

/// A segment: each token is the number of a set of bytes.
struct Tokens {
    tokens: Vec<u32>,
    /// For each number the bytes of the text that the token matches.
    sets: Vec<Vec<u8>>,
}

impl Tokens {
    /// `None` if a token matches no byte of the text.
    fn of(pattern: &[u8], length: usize, text: &[u8], ignore_case: bool) -> Option<Tokens> {
        let mut is_there = [false; 256];
        text.iter().for_each(|&byte| is_there[usize::from(byte)] = true);
        let bytes: Vec<u8> = (0..=255).filter(|&byte| is_there[usize::from(byte)]).collect();
        let mut sets = vec![bytes.clone()];
        let mut numbers = HashMap::new();
        let (mut tokens, mut rest) = (Vec::with_capacity(length), pattern);
        while let Some((token, after)) = Token::take(rest) {
            let number = match numbers.get(&token) {
                Some(&number) => number,
                None => {
                    let set: Vec<u8> = bytes.iter().copied().filter(|&byte| token.matches(byte, ignore_case)).collect();
                    let number = if set.len() == bytes.len() { ANY } else { sets.len() as u32 };
                    if set.is_empty() {
                        return None;
                    }
                    if number != ANY {
                        sets.push(set);
                    }
                    numbers.insert(token, number);
                    number
                }
            };
            tokens.push(number);
            rest = after;
        }
        Some(Tokens { tokens, sets })
    }

    /// The first of `count` beginnings at which the segment matches.
    fn find(&self, text: &[u8], count: usize) -> Option<usize> {
        let mut ends = vec![0; text.len() / 64 + 2];
        (0..count).for_each(|at| ends[at / 64] |= 1 << (at % 64));
        let mut rows = vec![[0; WORDS]; 256];
        for (nth, piece) in self.tokens.chunks(PIECE).enumerate() {
            let done = nth * PIECE;
            if piece.len() == PIECE && piece.iter().all(|&token| token == ANY) {
                ends.rotate_right(WORDS);
                continue;
            }
            self.fill(&mut rows, piece);
            let last = text.len().min(done + count + piece.len() - 1);
            if !pass(&rows, piece.len(), &mut ends, text, done..last) {
                return None;
            }
        }
        let at = ends.iter().position(|&word| word != 0)?;
        Some(at * 64 + ends[at].trailing_zeros() as usize - self.tokens.len())
    }

    /// Fills in, for each byte, the tokens of a piece that match it.
    fn fill(&self, rows: &mut [State], piece: &[u32]) {
        let mut any = [0; WORDS];
        let chosen = |at: usize, token: u32| u64::from(piece[at] == token) << (at % 64);
        (0..piece.len()).for_each(|at| any[at / 64] |= chosen(at, ANY));
        rows.fill(any);
        for (at, &token) in piece.iter().enumerate().filter(|(_, token)| **token != ANY) {
            for &byte in &self.sets[token as usize] {
                rows[usize::from(byte)][at / 64] |= 1 << (at % 64);
            }
        }
    }
}

/// Computes where this piece ends, from where the earlier pieces end. False if it ends nowhere.
fn pass(rows: &[State], length: usize, ends: &mut [u64], text: &[u8], bytes: std::ops::Range<usize>) -> bool {
    let (last_word, last_bit) = ((length - 1) / 64, (length - 1) % 64);
    let (mut state, mut carry, mut found) = ([0_u64; WORDS], 0, 0);
    for (word, bytes) in (bytes.start / 64..).zip(text[bytes.start / 64 * 64..bytes.end].chunks(64)) {
        let begin = ends[word];
        let mut out = 0;
        if begin != 0 || state != [0; WORDS] {
            for (bit, &byte) in bytes.iter().enumerate() {
                step(&mut state, begin >> bit & 1, &rows[usize::from(byte)]);
                out |= (state[last_word] >> last_bit & 1) << bit;
            }
        }
        ends[word] = out << 1 | carry;
        carry = out >> 63;
        found |= out;
    }
    // The bit behind the last byte, which may be the first one of a word.
    let behind = bytes.end.div_ceil(64);
    if bytes.end.is_multiple_of(64) {
        ends[behind] = carry;
    }
    found != 0
}

#[inline]
fn step(state: &mut State, begin: u64, row: &State) {
    for word in (1..WORDS).rev() {
        state[word] = (state[word] << 1 | state[word - 1] >> 63) & row[word];
    }
    state[0] = (state[0] << 1 | begin) & row[0];
}
