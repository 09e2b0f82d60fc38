"""A robot that knows where it is and steers by itself, in C: filter and controller as functions.

The robot drives on a plane, with a heading and a speed. It measures distance and bearing of a
beacon; an extended Kalman filter makes of that where it is, by the Jacobians of motion and
measurement, which primgraph takes. A controller improves its plan for the next ten steps by the
gradient of their cost, through a loop over these steps. Both are saved as `robot.c` and `robot.h`;
`main.c` drives with them, and this file drives the same way in Python and prints the same numbers.

    python robot_model.py
    make && ./robot
"""

import numpy as np

import primgraph as pg

STEP, HORIZON, TRIPS = 0.1, 10, 60
BEACON = np.array([4.0, 3.0])
# Variances of what drives the state on, and of distance and bearing.
DRIFT = np.diag([1e-4, 1e-4, 1e-4, 1e-3])
NOISE = np.diag([1e-2, 1e-3])


def moved(state, control):
    """Where the robot is a step later: `control` is how fast it turns, and how it speeds up."""
    _, _, heading, speed = state
    turn, thrust = control
    ahead = pg.stack([speed * pg.cos(heading), speed * pg.sin(heading), turn, thrust - 0.1 * speed])
    return state + STEP * ahead


def seen(state):
    """Distance and bearing of the beacon."""
    to = BEACON - state[:2]
    return pg.stack([pg.sqrt(pg.sum(to * to)), pg.arctan2(to[1], to[0]) - state[2]])


def track(state, covariance, control, measured):
    """One step of the extended Kalman filter."""
    predicted = moved(state, control)
    motion = pg.jacobian(predicted, state)
    spread = motion @ covariance @ motion.T + DRIFT

    expected = seen(predicted)
    sight = pg.jacobian(expected, predicted)
    surprise = measured - expected
    # Bearings go round.
    surprise = pg.stack([surprise[0], pg.arctan2(pg.sin(surprise[1]), pg.cos(surprise[1]))])
    gain = pg.linalg.solve(sight @ spread @ sight.T + NOISE, sight @ spread).T
    return {
        "new_state": predicted + gain @ surprise,
        "new_covariance": (np.eye(4) - gain @ sight) @ spread,
    }


def steer(state, plan, goal, rate):
    """The cost of a plan of controls, and a plan that is better by a step along its gradient."""

    def drive(state, control):
        state = moved(state, control)
        miss = state[:2] - goal
        return state, pg.sum(miss * miss) + 0.05 * pg.sum(control * control)

    last, costs = pg.scan(drive, state, plan)
    cost = pg.sum(costs) + last[3] ** 2
    slope = pg.grad(cost, plan)
    return {"cost": cost, "better_plan": plan - rate * slope}


def compiled():
    tracking = pg.trace(track, pg.spec(4), pg.spec((4, 4)), pg.spec(2), pg.spec(2))
    steering = pg.trace(steer, pg.spec(4), pg.spec((HORIZON, 2)), pg.spec(2), pg.spec(()))
    return pg.compile(tracking), pg.compile(steering)


def main():
    tracked, steered = compiled()
    tracked.save("robot.c", steered)

    state, covariance = np.array([0.0, 0.0, 0.5, 0.0]), 0.1 * np.eye(4)
    truth = np.array([0.1, -0.1, 0.4, 0.0])
    plan, goal = np.zeros((HORIZON, 2)), np.array([3.0, 1.0])
    for trip in range(TRIPS):
        for _ in range(5):
            found = steered(state, plan, goal, 0.02)
            plan = found["better_plan"]
        control, plan = plan[0], np.concatenate([plan[1:], plan[-1:]])
        # What the robot does and sees in truth.
        turn, thrust = control
        _, _, heading, speed = truth
        ahead = [speed * np.cos(heading), speed * np.sin(heading), turn, thrust - 0.1 * speed]
        truth = truth + STEP * np.array(ahead)
        to = BEACON - truth[:2]
        measured = np.array([np.hypot(*to), np.arctan2(to[1], to[0]) - truth[2]])
        found_state = tracked(state, covariance, control, measured)
        state, covariance = found_state["new_state"], found_state["new_covariance"]
        if trip % 10 == 9:
            print(f"{trip + 1:3} {state[0]:.9f} {state[1]:.9f} {state[2]:.9f} {found['cost']:.9f}")


if __name__ == "__main__":
    main()
