# What Redis 8 does otherwise than 7.0, for which the suite was written, where it would end many tests at their first
# line. It is appended to the suite's own tests/support/test.tcl.

# Since 7.2 a small list is a listpack, and so is a small set of other things than numbers.
proc assert_encoding {enc key} {
    set val [r object encoding $key]
    if {$val eq {listpack} && "[r type $key] $enc" in {{list quicklist} {set hashtable}}} return
    assert_match $enc $val
}
