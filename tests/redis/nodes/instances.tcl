# Read by the suite of tests/cluster before it starts its instances.

source [file join [file dirname [info script]] process.tcl]

# That of the run, which the suite has no option for.
set port [open ../../../port]
set ::redis_base_port [read $port]
close $port

# In place of the suite's own: an instance is the node behind the first one.
proc spawn_instance {type base_port count {conf {}} {base_conf_file ""}} {
    start_process ../../../src/redis-server [pwd]/log.txt $base_port [expr $count + 1]
    for {set id 0} {$id < $count} {incr id} {
        set port [port_of_instance $id]
        set link [link_to $port]
        lappend ::redis_instances [list pid [expr $id + 1] host 127.0.0.1 port $port plaintext-port 0 link $link]
    }
}

proc port_of_instance {id} {
    port_of_node [expr $id + 1]
}

proc link_to {port} {
    set link [redis 127.0.0.1 $port 0 0]
    $link reconnect 1
    return $link
}

proc kill_instance {type id} {
    if {[instance_is_killed $type $id]} {
        error "You tried to kill $type $id twice."
    }
    catch {dunlin node [expr $id + 1] resume}
    dunlin node [expr $id + 1] kill
    set_instance_attrib $type $id pid -1
    set_instance_attrib $type $id link you_tried_to_talk_with_killed_instance
}

proc restart_instance {type id} {
    dunlin node [expr $id + 1] restart
    set_instance_attrib $type $id pid [expr $id + 1]
    set_instance_attrib $type $id link [link_to [port_of_instance $id]]
}

proc cleanup {} {
    end_process
}

# Nodes of one process have no secret from strangers.
proc num_unique_secrets {} {
    return 1
}

proc cluster_config_consistent {} {
    for {set id 0} {$id < $::cluster_master_nodes + $::cluster_replica_nodes} {incr id} {
        if {[R $id cluster slots] ne [R 0 cluster slots]} {
            return 0
        }
    }
    return 1
}
