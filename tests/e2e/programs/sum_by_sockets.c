/* A torchrun-style program that knows nothing of Remuda: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
 * MASTER_PORT are all it reads. Rank 0 listens at the master's port, adds what the others send, and tells
 * them the sum.
 *
 * With the argument "once": rank 1 of the first world (TORCHELASTIC_RESTART_COUNT, as torchrun counts) dies
 * of SIGKILL when all have met. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANKS_MAX 64

static const char *given(const char *name)
{
        const char *value = getenv(name);

        if (value == NULL) {
                fprintf(stderr, "%s is not set\n", name);
                exit(3);
        }
        return value;
}

static int die(const char *what)
{
        perror(what);
        return 4;
}

static int number_from(int fd, int *value)
{
        return recv(fd, value, sizeof(*value), MSG_WAITALL) == sizeof(*value) ? 0 : -1;
}

static int number_to(int fd, int value)
{
        return send(fd, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value) ? 0 : -1;
}

static int serve(int port, int size, int *sum)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
        int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fds[RANKS_MAX], value;

        (void) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(listener, (struct sockaddr *) &at, sizeof(at)) < 0 || listen(listener, RANKS_MAX) < 0)
                return die("MASTER_PORT");
        for (int i = 1; i < size; i++) {
                fds[i] = accept(listener, NULL, NULL);
                if (fds[i] < 0 || number_from(fds[i], &value) < 0)
                        return die("a rank that came");
                *sum += value;
        }
        for (int i = 1; i < size; i++)
                if (number_to(fds[i], *sum) < 0 || number_from(fds[i], &value) < 0)
                        return die("a rank that was told the sum");
        return 0;
}

static int come(const char *address, const char *port, int rank, int *sum)
{
        const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
        struct addrinfo *to = NULL;
        int fd = -1;

        if (getaddrinfo(address, port, &hints, &to) != 0)
                return -die("MASTER_ADDR");
        for (int i = 0; i < 600; i++) { /* a minute: ranks start when they start */
                fd = socket(AF_INET, SOCK_STREAM, 0);
                if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
                        break;
                close(fd);
                fd = -1;
                usleep(100000);
        }
        freeaddrinfo(to);
        if (fd < 0 || number_to(fd, rank) < 0 || number_from(fd, sum) < 0)
                return -die("the master");
        return fd;
}

int main(int argc, char **argv)
{
        int rank = atoi(given("RANK")), size = atoi(given("WORLD_SIZE")), sum = 0, fd, r = 0;
        const char *address = given("MASTER_ADDR"), *port = given("MASTER_PORT");

        if (size > RANKS_MAX)
                return 3;
        if (rank == 0) {
                r = serve(atoi(port), size, &sum);
        } else {
                fd = come(address, port, rank, &sum);
                if (fd < 0)
                        return 4;
                if (argc > 1 && strcmp(argv[1], "once") == 0 && rank == 1 &&
                    strcmp(given("TORCHELASTIC_RESTART_COUNT"), "0") == 0)
                        (void) raise(SIGKILL);
                r = number_to(fd, rank) < 0;
        }
        printf("rank %d of %d, local rank %s, master %s: sum %d\n", rank, size, given("LOCAL_RANK"), address,
               sum);
        return r;
}
