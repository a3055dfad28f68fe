/* Ports are tried by binding, outside the range from which outgoing connections take theirs (ADR 0060). */
#include "io/free_ports.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LEAST_PORT 10240 /* below, well-known services are at home */
#define PORTS_END  65536
#define COUNT_MAX  1024
#define USUAL_LOW  32768 /* of Linux */
#define USUAL_HIGH 60999
#define FALLBACK   29500 /* torchrun's */
#define TRIES      4096

void free_ports_ranges(unsigned low, unsigned high, unsigned ranges[2][2])
{
        ranges[0][0] = LEAST_PORT;
        ranges[0][1] = low > LEAST_PORT ? low : LEAST_PORT;
        ranges[1][0] = high + 1 > LEAST_PORT ? high + 1 : LEAST_PORT;
        ranges[1][1] = ranges[1][0] < PORTS_END ? PORTS_END : ranges[1][0];
}

static void read_range(unsigned *low, unsigned *high)
{
        CLEANUP(fclose_p) FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
        char line[64], *second, *end;
        unsigned long first, last;

        *low = USUAL_LOW;
        *high = USUAL_HIGH;
        if (f == NULL || fgets(line, sizeof(line), f) == NULL)
                return;
        first = strtoul(line, &second, 10);
        last = strtoul(second, &end, 10);
        if (second == line || end == second || first > last || last >= PORTS_END)
                return;
        *low = (unsigned) first;
        *high = (unsigned) last;
}

static bool can_bind(unsigned port)
{
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port) };
        struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

        if (fd >= 0) { /* both families at once */
                r = bind(fd, (const struct sockaddr *) &six, sizeof(six));
                (void) close(fd);
                if (r < 0)
                        return false;
        }
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return false;
        r = bind(fd, (const struct sockaddr *) &four, sizeof(four));
        (void) close(fd);
        return r == 0;
}

static bool can_bind_all(unsigned first, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                if (!can_bind(first + i))
                        return false;
        return true;
}

static unsigned random_below(unsigned end)
{
        unsigned value = 0;

        if (getrandom(&value, sizeof(value), 0) != (ssize_t) sizeof(value))
                value = (unsigned) getpid() * 2654435761U;
        return value % end;
}

static unsigned any_port(void)
{
        struct sockaddr_in address = { .sin_family = AF_INET };
        CLEANUP(close_p) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(address);

        if (fd < 0 || bind(fd, (const struct sockaddr *) &address, size) < 0 ||
            getsockname(fd, (struct sockaddr *) &address, &size) < 0)
                return FALLBACK;
        return ntohs(address.sin_port);
}

unsigned free_ports(unsigned count)
{
        unsigned low, high, ranges[2][2], room[2], port;

        count = count < 1 ? 1 : count > COUNT_MAX ? COUNT_MAX : count;
        read_range(&low, &high);
        free_ports_ranges(low, high, ranges);
        for (int i = 0; i < 2; i++)
                room[i] = ranges[i][1] - ranges[i][0] >= count ? ranges[i][1] - ranges[i][0] - count + 1 : 0;
        for (unsigned tries = 0; room[0] + room[1] > 0 && tries < TRIES; tries++) {
                port = random_below(room[0] + room[1]);
                port = port < room[0] ? ranges[0][0] + port : ranges[1][0] + port - room[0];
                if (can_bind_all(port, count))
                        return port;
        }
        return any_port();
}
