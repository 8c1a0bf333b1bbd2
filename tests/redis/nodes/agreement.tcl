# Read at the start of each unit that starts a cluster.

# In place of the suite's own, which compares also what nodes need not agree on: the order of replicas, which Redis does
# not show yet when its suite asks; and a secret among nodes, from which none of one process has to be told apart.
proc cluster_config_consistent {} {
    for {set number 0} {$number < [llength $::servers]} {incr number} {
        if {[slots_of_node $number] ne [slots_of_node 0]} {
            return 0
        }
    }
    return 1
}

proc slots_of_node {number} {
    set slots {}
    foreach range [R $number cluster slots] {
        lappend slots [lrange $range 0 2] [lsort [lrange $range 3 end]]
    }
    return $slots
}
