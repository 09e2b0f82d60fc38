/* Threads that share the groups of blocks of a kernel: one crew for the process.
 *
 * Which thread does a group changes nothing in it. A kernel that is called while another one has
 * the crew, or in the middle of a group, does all groups itself, so that there are never more
 * threads at work than were asked for. Helpers are made when they are first needed, and again in
 * a child process, which has none. They wait for work with all signals blocked, and each keeps its
 * own memory for blocks. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

typedef int (*Group)(void *const *arrays, char *arena, long g);

typedef struct {
    Group group;
    void *const *arrays;
    long groups, bytes;
    atomic_long next;
    atomic_int failed;
    int helpers;             /* at work on it */
} Job;

#define MOST_HELPERS 255
#define STACK ((size_t)8 << 20)

static pthread_mutex_t crew_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t crew_called = PTHREAD_COND_INITIALIZER;
static pthread_cond_t crew_done = PTHREAD_COND_INITIALIZER;
static Job *crew_job;        /* what helpers are called for */
static int crew_wanted;      /* and how many more of them */
static int crew_helpers;     /* that there are */
static int crew_busy;
static atomic_int crew_most = 1;

static void do_groups(Job *job, char *arena) {
    for (long g; (g = atomic_fetch_add(&job->next, 1)) < job->groups;) {
        const int failed = job->group(job->arrays, arena, g);
        if (failed) {
            atomic_store(&job->failed, failed);
            atomic_store(&job->next, job->groups);
        }
    }
}

static void *help(void *none) {
    char *arena = NULL;
    long size = 0;
    pthread_mutex_lock(&crew_lock);
    for (;;) {
        while (crew_wanted == 0) pthread_cond_wait(&crew_called, &crew_lock);
        crew_wanted--;
        Job *job = crew_job;
        job->helpers++;
        pthread_mutex_unlock(&crew_lock);
        if (size < job->bytes) {
            free(arena);
            size = (job->bytes + 63) / 64 * 64;
            arena = aligned_alloc(64, (size_t)size);
            if (arena == NULL) size = 0;
        }
        /* Where there is no memory, the others do this thread's share. */
        if (size >= job->bytes) do_groups(job, arena);
        pthread_mutex_lock(&crew_lock);
        if (--job->helpers == 0) pthread_cond_broadcast(&crew_done);
    }
    return none;
}

static void crew_in_child(void) {
    pthread_mutex_init(&crew_lock, NULL);
    pthread_cond_init(&crew_called, NULL);
    pthread_cond_init(&crew_done, NULL);
    crew_job = NULL;
    crew_wanted = crew_helpers = crew_busy = 0;
}

/* Let there be `count` helpers, or as many as the system allows. */
static void grow_crew(int count) {
    static int registered;
    if (!registered) registered = pthread_atfork(NULL, NULL, crew_in_child) == 0;
    pthread_attr_t how;
    sigset_t all, before;
    if (!registered || pthread_attr_init(&how)) return;
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&how, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t one; crew_helpers < count; crew_helpers++)
        if (pthread_create(&one, &how, help, NULL)) break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
}

void primgraph_set_threads(int count) {
    atomic_store(&crew_most, count > MOST_HELPERS ? MOST_HELPERS + 1 : count);
}

/* All groups of a kernel; 0, or what one of them that failed returned. Each takes `bytes` of memory, which the caller's `arena` has once. */
int primgraph_crew(Group group, void *const *arrays, char *arena, long groups, long bytes) {
    const int most = atomic_load(&crew_most);
    const int helpers = (int)(groups < most ? groups : most) - 1;
    Job job = {.group = group, .arrays = arrays, .groups = groups, .bytes = bytes};
    int mine = 0;
    if (helpers > 0) {
        pthread_mutex_lock(&crew_lock);
        mine = !crew_busy;
        if (mine) {
            if (crew_helpers < helpers) grow_crew(helpers);
            crew_busy = 1;
            crew_job = &job;
            crew_wanted = helpers < crew_helpers ? helpers : crew_helpers;
            pthread_cond_broadcast(&crew_called);
        }
        pthread_mutex_unlock(&crew_lock);
    }
    do_groups(&job, arena);
    if (mine) {
        pthread_mutex_lock(&crew_lock);
        crew_wanted = 0;
        while (job.helpers) pthread_cond_wait(&crew_done, &crew_lock);
        crew_job = NULL;
        crew_busy = 0;
        pthread_mutex_unlock(&crew_lock);
    }
    return atomic_load(&job.failed);
}
