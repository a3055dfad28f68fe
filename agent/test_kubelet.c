/* Kubelet: which sockets it has by which words, and that nothing is missed where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kubelet.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "io/whole_file.h"

static void without_a_kubelet_there_is_nothing_to_tell(void **state)
{
        const struct services services = { .loop = NULL };
        const struct holder *holders = NULL;
        struct plugin_status status;
        const struct agent_options options = { .kubelet_root = "/none", .kubelet_dir = "none" };
        struct plugin_config config;
        struct kubelet *kubelet = NULL;
        struct inventory node;
        struct device_group *group;

        (void) state;
        plugin_config_default(&config);
        inventory_init(&node);
        group = inventory_add_group(&node);
        assert_non_null(group);
        group->free = 3;
        assert_int_equal(kubelet_new(&services, &options, "n1", &config, NULL, &kubelet, NULL), 0);
        assert_null(kubelet);
        kubelet_set_tree(NULL, NULL);
        kubelet_configure(NULL, NULL);
        kubelet_fill(NULL, &node);
        kubelet_publish(NULL, &node);
        kubelet_ask_holders(NULL);
        assert_int_equal(group->free, 3);
        assert_int_equal(kubelet_holders(NULL, &holders, NULL), 0);
        assert_false(kubelet_knows_holders(NULL) || kubelet_status(NULL, &status));
        assert_true(kubelet_serves(NULL));
        kubelet_free(NULL);
        inventory_free(&node);
}

/* clang-format off */
static const struct {
        const char *directory, *pod_resources;
        bool knows;
} rows[] = {
        { "/none/kubelet/device-plugins",    NULL,               true  }, /* beside it */
        { "/none/kubelet/device-plugins///", NULL,               true  },
        { "/none",                           "/none/other.sock", true  },
        { "/none",                           "none",             false },
        { "plugins",                         NULL,               false }, /* beside what? */
};
/* clang-format on */

static void who_holds_what_is_asked_where_there_is_a_socket(void **state)
{
        sd_event *loop = NULL;
        struct services services = { 0 };
        struct inventory nothing;

        (void) state;
        inventory_init(&nothing);
        assert_int_equal(loop_new(&loop, NULL), 0);
        services.loop = loop;
        services.published = &nothing;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct agent_options options = { .kubelet_root = "/none",
                                                       .kubelet_dir = rows[i].directory,
                                                       .pod_resources = rows[i].pod_resources };
                struct kubelet *kubelet = NULL;
                struct plugin_config config;
                struct plugin_status status;
                struct err err = { 0 };

                plugin_config_default(&config);
                if (kubelet_new(&services, &options, "n1", &config, NULL, &kubelet, &err) < 0)
                        fail_msg("%s: %s", rows[i].directory, err.msg);
                if (kubelet_knows_holders(kubelet) != rows[i].knows)
                        fail_msg("%s %s", rows[i].directory, rows[i].pod_resources);
                kubelet_set_tree(kubelet, NULL);
                kubelet_configure(kubelet, &config);
                assert_true(kubelet_status(kubelet, &status) && !status.kubelet_present);
                assert_true(kubelet_serves(kubelet)); /* to nobody */
                kubelet_free(kubelet);
        }
        assert_null(sd_event_unref(loop));
}

static void a_path_that_cannot_be_is_refused(void **state)
{
        sd_event *loop = NULL;
        struct services services = { 0 };
        struct kubelet *kubelet = NULL;
        struct plugin_config config;
        struct err err = { 0 };
        char path[300];
        const struct agent_options options = { .kubelet_root = "/none", .kubelet_dir = path };

        (void) state;
        memset(path, 'x', sizeof(path));
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        plugin_config_default(&config);
        assert_int_equal(loop_new(&loop, NULL), 0);
        services.loop = loop;
        assert_int_equal(kubelet_new(&services, &options, "n1", &config, NULL, &kubelet, &err),
                         -ENAMETOOLONG);
        assert_int_equal(strncmp(err.msg, "--kubelet-dir /xxx", 18), 0);
        assert_null(kubelet);
        assert_null(sd_event_unref(loop));
}

/* Who has what is not known then: a device plugin would give chips of claims away. */
static void without_the_account_of_claims_nothing_is_given(void **state)
{
        char root[] = "/tmp/remuda-kubelet-XXXXXX", path[100];
        const struct agent_options options = {
                .kubelet_root = root, .kubelet_dir = root, .store = "none", .cdi_dir = root
        };
        static const char spec[] = "{\"annotations\":{\"remuda.dev/claim\":\"{\\\"add\\\":[{\\\"uid\\\":"
                                   "\\\"u1\\\",\\\"namespace\\\":\\\"n\\\",\\\"name\\\":\\\"c\\\"}]}\"}}";
        static const char *const folders[] = { "", "/plugins", "/plugins/remuda.dev" };
        struct services services = { 0 };
        struct kubelet *kubelet = NULL;
        struct plugin_config config;
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(root));
        for (size_t i = 1; i < ARRAY_SIZE(folders); i++) {
                assert_true(text_format(path, sizeof(path), "%s%s", root, folders[i]));
                assert_int_equal(mkdir(path, 0700), 0);
        }
        assert_true(text_format(path, sizeof(path), "%s/plugins/remuda.dev/claims.json", root));
        assert_int_equal(whole_file_write(path, "{", 1, 0600, 0, NULL), 0);
        plugin_config_default(&config);
        assert_int_equal(loop_new(&services.loop, NULL), 0);
        assert_true(kubelet_new(&services, &options, "n1", &config, NULL, &kubelet, &err) < 0);
        assert_non_null(strstr(err.msg, "pods have claims on this node"));
        assert_null(kubelet);
        assert_int_equal(unlink(path), 0);
        assert_true(text_format(path, sizeof(path), "%s/remuda.dev-claim_u1.json", root));
        assert_int_equal(whole_file_write(path, spec, strlen(spec), 0600, 0, NULL), 0);
        err = (struct err){ 0 };
        assert_true(kubelet_new(&services, &options, "n1", &config, NULL, &kubelet, &err) < 0);
        assert_non_null(strstr(err.msg, "pods have claims on this node")); /* as a CDI spec says */
        assert_null(sd_event_unref(services.loop));
        assert_int_equal(unlink(path), 0);
        for (size_t i = ARRAY_SIZE(folders); i-- > 0;) {
                assert_true(text_format(path, sizeof(path), "%s%s", root, folders[i]));
                assert_int_equal(rmdir(path), 0);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_kubelet_there_is_nothing_to_tell),
                cmocka_unit_test(who_holds_what_is_asked_where_there_is_a_socket),
                cmocka_unit_test(a_path_that_cannot_be_is_refused),
                cmocka_unit_test(without_the_account_of_claims_nothing_is_given),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
