/* remuda ui: the page of a cluster, live or saved, on this machine, in a browser. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/ask.h"
#include "cli/command/commands.h"
#include "io/address.h"
#include "io/http/http_listen.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "scheduler-extender/commands/ui_forward.h"
#include "scheduler-extender/commands/ui_logs.h"
#include "scheduler-extender/commands/ui_store.h"
#include "scheduler-extender/page/page.h"
#include "scheduler-extender/page/page_assets.h"
#include "scheduler-extender/runbooks.h"
#include "store/store.h"

struct ui_options {
        struct cluster_arguments cluster;
        struct ask_arguments ask;
        const char *listen;
        bool no_open;
};

#define AT(member) offsetof(struct ui_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "listen", .type = OPTION_STRING, .offset = AT(listen), .value = "ADDR:PORT",
          .default_ = "127.0.0.1:0", .help = "of this machine alone; port 0 = any free one" },
        { .name = "no-open", .type = OPTION_BOOL, .offset = AT(no_open),
          .help = "start no browser (xdg-open)" },
        ASK_ARGUMENTS_ROWS(struct ui_options),
        CLUSTER_ARGUMENTS_ROWS(struct ui_options),
        { 0 },
};
/* clang-format on */

const struct option_program command_ui_options = {
        .name = "remuda ui",
        .summary = "Shows the page of a cluster, live or saved: the fleet, what waits, what trains.",
        .after = "Of the jobs of `remuda run`: remuda ui --store dir:remuda-jobs. See remuda-ui(1).",
        .specs = specs,
};

struct ui {
        struct ui_store *store; /* one of both */
        struct ui_forward *forward;
        struct ui_logs *logs;
        sd_event *loop; /* owned where it is not the store's */
};

static void get(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct ui *ui = userdata;
        const struct page_assets_file *file = page_assets_find(request->path);

        if (ui->store != NULL)
                ui_store_get(ui->store, request, reply);
        else if (strcmp(request->path, "/v1/changes") == 0)
                ui_forward_changes(ui->forward, reply);
        else
                ui_forward_request(ui->forward, request, file != NULL ? file->type : NULL, reply);
}

static void get_logs(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        ui_logs_get(((struct ui *) userdata)->logs, request, reply);
}

static void ask_whatif(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct ui *ui = userdata;

        if (ui->store != NULL)
                ui_store_whatif(ui->store, request, reply);
        else
                ui_forward_request(ui->forward, request, NULL, reply);
}

/* What is not here goes nowhere: nobody's browser reaches /scheduler/bind. */
static const struct http_route routes[] = {
        { .method = "POST",
          .path = "/v1/whatif",
          .handler = ask_whatif,
          .refuses = page_refuses,
          .body_max_bytes = 16 << 20,
          .headers = page_headers },
        PAGE_ROUTE(runbooks_handler, RUNBOOKS_PATH "*") PAGE_ROUTE(get_logs, UI_LOGS_PATH) PAGE_ROUTES(get)
#define PAGE_ASSET(path_) PAGE_ROUTE(get, path_)
#include "scheduler-extender/page_paths.inc"
                { 0 },
};

/* A grandchild, which is nobody's to wait for; where there is no such program, the address was printed. */
static void open_browser(const char *address)
{
        char url[HTTP_ADDRESS_BYTES + 16];
        pid_t child;
        sigset_t none;
        int null;

        (void) text_format(url, sizeof(url), "http://%s/", address);
        child = fork();
        if (child > 0)
                (void) waitpid(child, NULL, 0);
        if (child != 0)
                return;
        if (fork() != 0)
                _exit(0);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) setsid();
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
                (void) dup2(null, fd);
        (void) execlp("xdg-open", "xdg-open", url, (char *) NULL);
        _exit(127);
}

static int listen_here(struct ui *ui, const struct ui_options *o, struct http_server **ret, struct err *err)
{
        const struct http_server_options options = { .address = o->listen,
                                                     .loopback_only = true,
                                                     .connections_max = 1024,
                                                     .routes = routes,
                                                     .headers = page_headers,
                                                     .userdata = ui };
        int r = http_server_new(ui->loop, &options, ret, err);

        if (r < 0)
                return err_wrap(err, r, "--listen");
        printf("listening address=%s\n", http_server_address(*ret));
        (void) fflush(stdout);
        if (!o->no_open)
                open_browser(http_server_address(*ret));
        return 0;
}

static int open_forward(struct ui *ui, const struct ui_options *o, struct err *err)
{
        const char *address = o->ask.extender != NULL ? o->ask.extender : getenv("REMUDA_EXTENDER");
        struct ui_forward_options options = { .address =
                                                      address != NULL && address[0] != '\0' ? address : NULL,
                                              .kubeconfig = o->cluster.kubeconfig,
                                              .namespace_ = o->ask.namespace_ };
        struct address numeric;
        int r = options.address == NULL ? 0 : address_parse(options.address, &numeric, err);

        if (r < 0)
                return err_wrap(err, r, "--extender");
        r = loop_new(&ui->loop, err);
        return r < 0 ? r : ui_forward_new(ui->loop, &options, &ui->forward, err);
}

static bool reads_store(const struct ui_options *o)
{
        return store_directory(o->cluster.store) != NULL &&
               (o->ask.extender == NULL || strcmp(o->ask.extender, "none") == 0);
}

static int open_ui(struct ui *ui, const struct ui_options *o, struct err *err)
{
        int r;

        if (!reads_store(o)) {
                struct err why;

                r = open_forward(ui, o, err);
                why = *err;
                return r != -ENOENT ? r
                                    : err_set(err, r,
                                              "%.380s; of the jobs of `remuda run`: --store dir:remuda-jobs",
                                              why.msg);
        }
        r = ui_store_new(&o->cluster, &ui->store, err);
        if (r == 0)
                ui->loop = sd_event_ref(ui_store_loop(ui->store));
        return r;
}

static int open_logs(struct ui *ui, const struct ui_options *o, struct err *err)
{
        ui->logs = ui_logs_new(ui->loop, o->cluster.kubeconfig,
                               ui->store != NULL ? store_directory(o->cluster.store) : NULL);
        return ui->logs == NULL ? err_set(err, -ENOMEM, "no memory") : 0;
}

/* Between two turns connections are opened, which takes time. */
static int run_loop(const struct ui *ui)
{
        int r = 0;

        while (r >= 0 && sd_event_get_state(ui->loop) != SD_EVENT_FINISHED) {
                r = sd_event_run(ui->loop, UINT64_MAX);
                if (r >= 0 && ui->forward != NULL && sd_event_get_state(ui->loop) != SD_EVENT_FINISHED)
                        ui_forward_work(ui->forward);
        }
        return r < 0 ? r : 0;
}

static int run(const struct ui_options *o, struct err *err)
{
        struct http_server *server = NULL;
        struct ui ui = { .loop = NULL };
        int r = open_ui(&ui, o, err);

        if (r == 0)
                r = open_logs(&ui, o, err);
        if (r == 0)
                r = listen_here(&ui, o, &server, err);
        if (r == 0 && (r = run_loop(&ui)) < 0)
                (void) err_set(err, r, "the event loop failed");
        ui_logs_free(ui.logs);
        ui_store_close_page(ui.store);
        ui_forward_free(ui.forward);
        http_server_free(server);
        ui_store_free(ui.store);
        sd_event_unref(ui.loop);
        return r;
}

int command_ui(int argc, char **argv)
{
        struct ui_options options = { 0 };
        struct err err = { 0 };
        size_t operands;
        int r = options_start(&command_ui_options, REMUDA_VERSION, argc, argv, &options, &operands, stdout,
                              stderr);

        if (r >= 0)
                return r;
        r = run(&options, &err);
        return options_end(&command_ui_options, r, &err, stderr);
}
