/* Free port: TCP ports for a program that binds them itself, such as the MASTER_PORT of a world.
 *
 * What the kernel gives for port 0 is from the range of outgoing connections, any of which may have taken the
 * port a moment later. These are from outside it (/proc/sys/net/ipv4/ip_local_port_range), can be bound now
 * on every address, and start at a random place, so that two who ask at the same time get different ones.
 * Who serves by himself listens on port 0 instead and asks for nothing. */
#pragma once

/* free_ports() - the first of `count` (1..1024) neighbouring ports. */
unsigned free_ports(unsigned count);

/* free_ports_ranges() - where ports may be taken from when outgoing connections take low..high: two ranges,
 * first and past-the-end, empty where there is no room. Pure. */
void free_ports_ranges(unsigned low, unsigned high, unsigned ranges[2][2]);
