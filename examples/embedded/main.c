/* Drives the robot of robot_model.py by the functions that it has saved, and prints what that
 * prints. Nothing is allocated: all that is there is on the stack of this function. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "robot.h"

enum { HORIZON = 10, TRIPS = 60 };

static const double step = 0.1;
static const double beacon[2] = {4.0, 3.0};

int main(void) {
    double state[4] = {0.0, 0.0, 0.5, 0.0};
    double covariance[4 * 4] = {0.1, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 0.1, 0, 0, 0, 0, 0.1};
    double truth[4] = {0.1, -0.1, 0.4, 0.0};
    double plan[HORIZON * 2] = {0.0}, better_plan[HORIZON * 2];
    const double goal[2] = {3.0, 1.0};
    track_workspace work;

    for (int trip = 0; trip < TRIPS; trip++) {
        double cost = 0.0;
        for (int k = 0; k < 5; k++) {
            steer(state, plan, goal, 0.02, &cost, better_plan);
            memcpy(plan, better_plan, sizeof plan);
        }
        const double control[2] = {plan[0], plan[1]};
        /* The last control of the plan stays, where nothing follows it. */
        memmove(plan, plan + 2, sizeof plan - 2 * sizeof *plan);

        /* What the robot does and sees in truth. */
        const double speed = truth[3];
        truth[0] += step * speed * cos(truth[2]);
        truth[1] += step * speed * sin(truth[2]);
        truth[2] += step * control[0];
        truth[3] += step * (control[1] - 0.1 * speed);
        const double to[2] = {beacon[0] - truth[0], beacon[1] - truth[1]};
        const double measured[2] = {hypot(to[0], to[1]), atan2(to[1], to[0]) - truth[2]};

        double new_state[4], new_covariance[4 * 4];
        if (track(state, covariance, control, measured, new_state, new_covariance, &work) != 0) {
            fputs("the filter has failed: a matrix is singular\n", stderr);
            return 1;
        }
        memcpy(state, new_state, sizeof state);
        memcpy(covariance, new_covariance, sizeof covariance);
        if (trip % 10 == 9) {
            printf("%3d %.9f %.9f %.9f %.9f\n", trip + 1, state[0], state[1], state[2], cost);
        }
    }
    return 0;
}
