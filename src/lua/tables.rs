//! Tables: made, read, changed and walked through a [`Stack`].
//!
//! A table that is walked must not change, since the walk would lose its place: who
//! changes one says so by an assertion.

use std::ffi::c_int;

use mlua_sys as ffi;

use super::stack::{Path, index};
use super::{Kind, OUT_OF_MEMORY, Raise, Reference, Stack, calls};

/// Tables. None of these asks a metatable, but [`Stack::look_up`].
impl Stack<'_> {
    /// Pushes a table with room for so many elements and fields.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn push_table(&mut self, elements: usize, fields: usize) -> Result<(), Raise> {
        self.obtain(elements.saturating_add(fields.saturating_mul(3)).saturating_mul(16))?;
        self.ensure(1);
        let (elements, fields) = (c_int::try_from(elements), c_int::try_from(fields));
        let (Ok(elements), Ok(fields)) = (elements, fields) else { return Err(Raise::text(OUT_OF_MEMORY)) };
        unsafe { ffi::lua_createtable(self.raw(), elements, fields) };
        Ok(())
    }

    /// Pushes a table of strings.
    ///
    /// # Errors
    /// When memory has run out; the table may be there then, without some of them.
    pub fn push_list<'w>(&mut self, words: impl ExactSizeIterator<Item = &'w [u8]>) -> Result<(), Raise> {
        self.push_table(words.len(), 0)?;
        self.fill(words)
    }

    /// Makes strings the first elements of the table on top.
    ///
    /// # Errors
    /// When memory has run out; the table may have some of them then.
    pub fn fill<'w>(&mut self, words: impl Iterator<Item = &'w [u8]>) -> Result<(), Raise> {
        self.assert_table(-1);
        self.assert_at_rest();
        for (number, word) in (1..).zip(words) {
            self.push_bytes(word)?;
            // SAFETY: below the string lies the table.
            unsafe { ffi::lua_rawseti_(self.raw(), -2, number) };
        }
        Ok(())
    }

    /// Pushes a table with one field, a string.
    ///
    /// # Errors
    /// When memory has run out; the table may be there then, without the field.
    pub fn push_record(&mut self, name: &str, text: &[u8]) -> Result<(), Raise> {
        self.push_table(0, 1)?;
        self.push_plain(name.as_bytes());
        self.push_bytes(text)?;
        // SAFETY: below the two strings lies the table that was made above.
        unsafe { ffi::lua_rawset(self.raw(), -3) };
        Ok(())
    }

    pub(super) fn assert_table(&self, at: i32) {
        assert!(self.kind(at) == Kind::Table, "the place holds a table");
    }

    pub(super) fn assert_at_rest(&self) {
        assert!(self.walks == 0 && self.paths.is_empty(), "a table that is walked does not change");
    }

    /// Replaces the key on top by its value.
    pub fn get(&mut self, table: i32) {
        self.assert_table(table);
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        unsafe { ffi::lua_rawget(self.raw(), table) };
    }

    /// Pushes the value of a field.
    pub fn get_field(&mut self, table: i32, name: &str) {
        let table = self.absolute(table);
        self.push_plain(name.as_bytes());
        self.get(table);
    }

    /// Pushes the value of a field whose name is kept, unless that is nil; says whether it did.
    pub fn find_field(&mut self, table: i32, name: &Reference) -> bool {
        let table = self.absolute(table);
        self.push_ref(name);
        self.get(table);
        let is_there = self.kind(-1) != Kind::Nil;
        if !is_there {
            self.pop(1);
        }
        is_there
    }

    /// Pushes an element, counted from 1.
    pub fn get_element(&mut self, table: i32, number: usize) {
        self.assert_table(table);
        self.ensure(1);
        let Ok(number) = c_int::try_from(number) else { return self.push_nil() };
        unsafe { ffi::lua_rawgeti_(self.raw(), table, number) };
    }

    /// Gives the key below the top the value on top, and takes both away.
    ///
    /// # Errors
    /// When the key is nil or no number, or memory has run out.
    pub fn set(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        match self.kind(-2) {
            Kind::Nil => return Err(Raise::text("table index is nil")),
            Kind::Number if self.number(-2).is_some_and(f64::is_nan) => {
                return Err(Raise::text("table index is NaN"));
            }
            _ => {}
        }
        self.check_memory(0)?;
        unsafe { ffi::lua_rawset(self.raw(), table) };
        Ok(())
    }

    /// Gives a field the value on top, and takes that away.
    ///
    /// # Errors
    /// When memory has run out.
    pub fn set_field(&mut self, table: i32, name: &str) -> Result<(), Raise> {
        let table = self.absolute(table);
        self.assert_table(table);
        self.assert_at_rest();
        self.check_memory(0)?;
        self.push_plain(name.as_bytes());
        // SAFETY: there is the value below the name; a name is a key that every table takes.
        unsafe {
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_rawset(self.raw(), table);
        }
        Ok(())
    }

    /// Gives an element, counted from 1, the value on top, and takes that away.
    ///
    /// # Errors
    /// When memory has run out, or the number is too large.
    pub fn set_element(&mut self, table: i32, number: usize) -> Result<(), Raise> {
        self.assert_table(table);
        self.assert_at_rest();
        self.check_memory(0)?;
        let number = c_int::try_from(number).map_err(|_| Raise::text("table overflow"))?;
        unsafe { ffi::lua_rawseti_(self.raw(), table, number) };
        Ok(())
    }

    /// Calls `act` for each entry, its key below its value on top. Meanwhile no table may
    /// change, and nothing of Lua may run.
    ///
    /// # Errors
    /// Those of `act`, which end the walk.
    pub fn each(&mut self, table: i32, mut act: impl FnMut(&mut Self) -> Result<(), Raise>) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        let start = self.top();
        self.walks += 1;
        self.push_nil();
        let mut result = Ok(());
        // SAFETY: the key on top is nil or one that `lua_next` gave, and as no table has changed since, it is valid.
        while result.is_ok() && unsafe { ffi::lua_next(self.raw(), table) != 0 } {
            result = act(self);
            if result.is_ok() {
                self.truncate(start + 1);
            }
        }
        self.walks -= 1;
        result
    }

    /// Begins to walk a table without a closure, so that tables in it can be walked too, however deep they nest. Until
    /// [`Stack::next`] has come to its end, or [`Stack::leave`], no table may change, and nothing of Lua may run.
    ///
    /// # Errors
    /// When the stack is full.
    pub fn walk(&mut self, table: i32) -> Result<(), Raise> {
        self.assert_table(table);
        self.reserve(3)?;
        let table = self.absolute(table);
        self.push_nil();
        self.paths.push(Path { table, key: index(self.top()) });
        Ok(())
    }

    /// Goes on with the innermost walk: takes away what lies above its key, and puts the next key and its value there.
    /// False at its end.
    #[expect(clippy::should_implement_trait, reason = "what it goes through are tables of Lua")]
    pub fn next(&mut self) -> bool {
        let Some(path) = self.paths.last().copied() else { return false };
        // SAFETY: the key on top is nil or one that `lua_next` gave: `floor` and the assertions of `replace` keep its
        // place and the table's as they are. As no table has changed since, the key is valid.
        let is_there = unsafe {
            ffi::lua_settop(self.raw(), path.key);
            ffi::lua_next(self.raw(), path.table) != 0
        };
        if !is_there {
            self.paths.pop();
        }
        is_there
    }

    /// Ends the innermost walk, and takes away its key and what lies above.
    pub fn leave(&mut self) {
        if let Some(path) = self.paths.pop() {
            // SAFETY: the key's place is within the stack.
            unsafe { ffi::lua_settop(self.raw(), path.key - 1) };
        }
    }

    /// Replaces the key on top by what a script would find there, asking the table's metatable; or by the
    /// error of that, and answers false.
    pub fn look_up(&mut self, table: i32) -> bool {
        self.assert_at_rest();
        assert!(index(self.top()) > self.floor(), "the key on top may be replaced");
        self.ensure(2);
        let table = self.absolute(table);
        // SAFETY: there is room. The call takes the function, the table and the key, and catches errors.
        unsafe {
            ffi::lua_pushcfunction(self.raw(), calls::look_up);
            ffi::lua_insert(self.raw(), -2);
            ffi::lua_pushvalue(self.raw(), self.valid(table));
            ffi::lua_insert(self.raw(), -2);
        }
        self.call(2, Some(1))
    }

    /// Pushes a table that holds the keys and values of another in a row; answers how many of each there are.
    ///
    /// # Errors
    /// When memory has run out; what was pushed is empty then.
    pub fn push_entries(&mut self, table: i32) -> Result<usize, Raise> {
        self.assert_table(table);
        self.reserve(4)?;
        let table = self.absolute(table);
        self.push_table(0, 0)?;
        let (entries, mut count) = (self.absolute(-1), 0);
        self.push_nil();
        // SAFETY: the key on top is nil or one that `lua_next` gave, and that table does not change meanwhile.
        while unsafe { ffi::lua_next(self.raw(), table) != 0 } {
            self.push_copy(-2);
            self.set_element(entries, count * 2 + 1)?;
            self.set_element(entries, count * 2 + 2)?;
            count += 1;
        }
        Ok(count)
    }

    /// Takes away the value below the top.
    pub fn remove_below(&mut self) {
        let below = index(self.top()) - 1;
        assert!(below > self.floor(), "the arguments of a call stay where they are");
        unsafe { ffi::lua_remove(self.raw(), below) };
    }

    /// Pushes the value's metatable; false, with nothing pushed, when it has none.
    pub fn get_metatable(&mut self, at: i32) -> bool {
        self.ensure(1);
        unsafe { ffi::lua_getmetatable(self.raw(), self.valid(at)) != 0 }
    }

    /// Makes the table on top the metatable of the value at `at`, and takes it away.
    pub fn set_metatable(&mut self, at: i32) {
        self.assert_table(-1);
        self.assert_at_rest();
        unsafe { ffi::lua_setmetatable(self.raw(), at) };
    }
}
