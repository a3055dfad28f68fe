/* A loop that ends with the first answer. */
#include "store/store_once.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "io/loop.h"
#include "store/kubernetes/kube_reach.h"

static void close_once(struct store_once *once)
{
        store_close(once->store);
        sd_event_unref(once->loop);
}

int store_once_open(struct store_once *once, const struct store_options *options, struct err *err)
{
        int r = strcmp(options->spec, "kubernetes") == 0 ? kube_reach(options->kubeconfig, err) : 0;

        if (r < 0)
                return r;
        r = sd_event_new(&once->loop);
        if (r < 0)
                return err_set(err, r, "make a loop: %s", strerror(-r));
        once->store = NULL;
        once->failure[0] = '\0';
        once->result = -EINTR; /* a signal ends the loop, too */
        (void) text_copy(once->sentence, sizeof(once->sentence), "interrupted");
        r = store_open(once->loop, options, &once->store, err);
        if (r < 0)
                close_once(once);
        return r;
}

void store_once_answered(void *userdata, int result, const char *sentence)
{
        struct store_once *once = userdata;

        once->result = result;
        (void) text_copy(once->sentence, sizeof(once->sentence), sentence);
        (void) sd_event_exit(once->loop, 0);
}

static void too_late(void *userdata)
{
        struct store_once *once = userdata;
        char sentence[256];

        (void) text_format(sentence, sizeof(sentence), "the store did not answer within %d s%s%s",
                           (int) (STORE_ONCE_USEC / 1000000), once->failure[0] == '\0' ? "" : ": ",
                           once->failure);
        store_once_answered(once, -ETIMEDOUT, sentence);
}

int store_once_wait(struct store_once *once, struct err *err)
{
        sd_event_source *timer = NULL;
        int r = loop_after(once->loop, STORE_ONCE_USEC, too_late, once, &timer);

        if (r >= 0)
                r = sd_event_loop(once->loop);
        if (r < 0)
                (void) err_set(err, r, "wait for the store: %s", strerror(-r));
        else if (once->result < 0)
                r = err_set(err, once->result, "%s", once->sentence);
        sd_event_source_disable_unref(timer);
        close_once(once); /* a write that is still under way is answered now */
        return r < 0 ? r : 0;
}
