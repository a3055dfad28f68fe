/* Ports that no outgoing connection takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/free_ports.h"

static void test_ranges(void **state)
{
        unsigned r[2][2];

        (void) state;
        free_ports_ranges(32768, 60999, r);
        assert_int_equal(r[0][0], 10240);
        assert_int_equal(r[0][1], 32768);
        assert_int_equal(r[1][0], 61000);
        assert_int_equal(r[1][1], 65536);
        free_ports_ranges(1024, 65535, r); /* no room */
        assert_int_equal(r[0][0], r[0][1]);
        assert_int_equal(r[1][0], r[1][1]);
        free_ports_ranges(1, 20000, r);
        assert_int_equal(r[0][0], r[0][1]);
        assert_int_equal(r[1][0], 20001);
}

static void test_neighbours_can_be_bound(void **state)
{
        unsigned low = 32768, high = 60999, first;
        FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
        int fds[16];

        (void) state;
        assert_true(f == NULL || fscanf(f, "%u %u", &low, &high) == 2);
        if (f != NULL)
                (void) fclose(f);
        first = free_ports(16);
        assert_in_range(first, 1024, 65536 - 16);
        if (low > 10240 + 1024 || high < 65535 - 1024)
                assert_true(first + 15 < low || first > high);
        for (unsigned i = 0; i < 16; i++) {
                struct sockaddr_in address = { .sin_family = AF_INET,
                                               .sin_port = htons((uint16_t) (first + i)) };

                fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_int_equal(bind(fds[i], (const struct sockaddr *) &address, sizeof(address)), 0);
        }
        for (unsigned i = 0; i < 16; i++)
                (void) close(fds[i]);
}

/* In a network of its own, where a process may say which ports outgoing connections take. */
static void in_a_network(const char *outgoing, unsigned count, unsigned low, unsigned high)
{
        pid_t child = fork();
        int status = 0;

        assert_true(child >= 0);
        if (child == 0) {
                FILE *f;
                unsigned port;

                if (unshare(CLONE_NEWNET) < 0 ||
                    (f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "we")) == NULL)
                        _exit(2);
                if (fputs(outgoing, f) < 0 || fclose(f) != 0)
                        _exit(2);
                port = free_ports(count);
                _exit(port >= low && port <= high ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 2)
                print_message("no network of its own for %s\n", outgoing);
        else
                assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_beside_what_outgoing_connections_take(void **state)
{
        (void) state;
        in_a_network("20000 65535", 0, 10240, 19999);
        in_a_network("10000 60000", 5000, 60001, 65535 - 1023);
        in_a_network("1024 65535", 1, 1024, 65535); /* no room: what the kernel gives */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_neighbours_can_be_bound),
                cmocka_unit_test(test_beside_what_outgoing_connections_take),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
