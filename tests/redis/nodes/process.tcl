# The servers of a cluster that Redis's suites start are nodes of one process here, as those of two processes do not hear
# each other. Each starts by itself, as the suites expect: these have the nodes meet.

# The process, its log, its first port and the number of its nodes. The first node is the one that all orders go to.
set ::nodes_pid 0
set ::nodes_log ""
set ::nodes_port 0
set ::nodes_count 0

proc dunlin {args} {
    set first [redis 127.0.0.1 $::nodes_port 0 0]
    set reply [$first dunlin {*}$args]
    $first close
    return $reply
}

# Starts the process, whose nodes know each other until each is reset.
proc start_process {program log port count} {
    set ::nodes_port $port
    set ::nodes_log $log
    set ::nodes_count $count
    set words [list --port $port --cluster $count --test-kit yes --enable-debug-command yes]
    set ::nodes_pid [exec $program {*}$words >> $log 2>> $log &]
    for {set number 0} {$number < $count} {incr number} {
        if {![server_is_up 127.0.0.1 [port_of_node $number] 100]} {
            error "no node at port [port_of_node $number]: [exec cat $log]"
        }
    }
    for {set number 0} {$number < $count} {incr number} {
        set node [redis 127.0.0.1 [port_of_node $number] 0 0]
        $node cluster reset hard
        $node close
    }
}

proc port_of_node {number} {
    expr {$::nodes_port + $number}
}

proc end_process {} {
    exec kill -KILL $::nodes_pid
    while {[is_alive $::nodes_pid]} {
        after 5
    }
    set ::nodes_pid 0
}

# In place of the suites' own, for which a process is a node.
proc pause_process {number} {
    dunlin node $number pause
}

proc resume_process {number} {
    dunlin node $number resume
}
