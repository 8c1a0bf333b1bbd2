# Read at the start of each unit of tests/unit/cluster.

source [file join [file dirname [info script]] process.tcl]
source [file join [file dirname [info script]] agreement.tcl]

# The number of the node that is started next.
set ::next_node 0

proc start_node {overrides} {
    set number $::next_node
    incr ::next_node -1
    set port [port_of_node $number]
    set client [redis 127.0.0.1 $port 0 0]
    foreach {name value} $overrides {
        if {$name ne "cluster-enabled"} {
            $client config set $name $value
        }
    }
    dict create pid $number host 127.0.0.1 port $port client $client config {} stdout $::nodes_log
}

proc end_node {srv} {
    catch {[dict get $srv client] close}
    catch {dunlin node [dict get $srv pid] resume}
    dunlin node [dict get $srv pid] kill
}

# In place of the suite's own: runs the code with one more node.
proc start_server {options {code undefined}} {
    set tags {}
    set overrides {}
    foreach {option value} $options {
        switch $option {
            "tags" { set tags [string map { \" "" } $value] }
            "overrides" { set overrides [concat $overrides $value] }
            default { error "Unknown option $option" }
        }
    }
    set ::tags [concat $::tags $tags]
    # There is no bus, so nothing listens at a port for it.
    set reason "cluster-port"
    if {[dict exists $overrides cluster-port] || ![tags_acceptable $::tags reason]} {
        incr ::num_aborted
        send_data_packet $::test_server_fd ignore $reason
    } else {
        set is_first [expr {$::nodes_pid == 0}]
        if {$is_first} {
            start_process src/redis-server [tmpdir nodes]/stdout $::baseport 21
            # From the highest on, so that ports behind those of a unit are free.
            set ::next_node [expr $::nodes_count - 1]
        }
        lappend ::servers [start_node $overrides]
        set failed [catch {uplevel 1 $code} result]
        set trace $::errorInfo
        end_node [lindex $::servers end]
        set ::servers [lrange $::servers 0 end-1]
        if {$is_first} {
            end_process
        }
        if {$failed} {
            error $result $trace
        }
    }
    set ::tags [lrange $::tags 0 end-[llength $tags]]
}

# In place of the suite's own.
proc restart_server {level wait_ready rotate_logs {reconnect 1} {shutdown sigterm}} {
    set number [srv $level pid]
    dunlin node $number kill
    dunlin node $number restart
    reconnect $level
}
